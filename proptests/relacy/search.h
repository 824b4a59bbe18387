#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <streambuf>
#include <string>

#include "proptests/relacy/relacy_atomics.h"

namespace weir::relacy {

/// What a search came to.
struct Found {
  bool fault;
  std::uint64_t executions;
  std::string history;  // of the execution that failed
};

/// Takes what fits. Relacy replaces operator new while it runs a test, so what it prints must not
/// allocate: the memory would be freed by the other operator delete.
class FixedText : public std::streambuf {
 public:
  FixedText() { setp(text_.data(), text_.data() + text_.size()); }
  [[nodiscard]] std::string text() const { return {pbase(), pptr()}; }

 private:
  std::array<char, 65'536> text_;
};

template <class Test>
Found search(rl::scheduler_type_e scheduler, unsigned switches, std::uint64_t most_executions) {
  rl::test_params params;
  FixedText text;
  std::ostream out{&text};
  params.output_stream = params.progress_stream = &out;
  params.search_type = scheduler;
  params.context_bound = switches;
  params.iteration_count = most_executions;
  const bool right = rl::simulate<Test>(params);
  return {!right, params.stop_iteration, text.text()};
}

/// Every execution of `Test`: for one operation a thread.
template <class Test>
Found search_all() {
  return search<Test>(rl::sched_full, 0, 100'000'000);
}

/// Every execution of `Test` with at most `switches` preemptions: for longer programs.
template <class Test>
Found search_bounded(unsigned switches) {
  return search<Test>(rl::sched_bound, switches, 100'000'000);
}

/// As many of a program's executions as it says itself.
template <template <class> class Program>
Found search_program() {
  using Test = Program<Atomics>;
  return search_bounded<Test>(Test::preemptions);
}

}  // namespace weir::relacy
