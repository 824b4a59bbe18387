#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ci/gate/concurrency.h"
#include "ci/gate/domain.h"
#include "model/history.h"
#include "model/verdict.h"
#include "proptests/harness/contract.h"

namespace weir::gate {

/// How much is tried, and from where.
struct Effort {
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> cases;  // decisions a contract, beside shrinking; if not said, 60,000 of a script,
                                       // and 6,000 of a client program, which goes one round trip at a time
  std::optional<std::chrono::steady_clock::time_point> deadline;  // a hard wall: partial results after it
};

/// A smallest history that breaks a promise.
struct Counterexample {
  model::Failure failure;
  model::History history;  // of the first of its two runs
  model::Verdict verdict;  // with explanations
  std::size_t runs = 0;    // scenarios that were run to make it small
  bool certified = false;  // everything with fewer calls in the scope was run, and passed
  bool second_run_differs = false;
  std::optional<Interleaving> interleaving;  // concurrency: instead of a history
  InterleavingRun run;                       // what came of it
  std::optional<PassingMove> passing;        // the nearest order that passes
  std::string steps;                         // and its steps, laid out for people
  std::filesystem::path file;                // where its repro file was written
};

/// One promise, judged.
struct Line {
  enum class Status : std::uint8_t { pass, fail, inconclusive, not_promised };
  model::Promise promise;
  Status status = Status::pass;
  std::string note;  // why it is inconclusive or not promised; what was seen to pass
  std::vector<Counterexample> counterexamples;
};

/// What came of one contract.
struct Card {
  harness::Contract contract;
  std::vector<Line> lines;
  model::Coverage coverage;
  std::uint64_t decisions = 0;  // calls that were made and judged, shrinking included
  double seconds = 0;
  std::string redis_version;
  std::string cut_short;  // why it ended early: the budget, an interrupt; empty if it did not

  enum class Outcome : std::uint8_t { pass, fail, inconclusive };
  [[nodiscard]] Outcome outcome() const;

  /// Every line did what the contract's `expect` says of it ("pass" where it says nothing).
  [[nodiscard]] bool as_expected() const;
  [[nodiscard]] bool expected_to_fail() const { return !contract.expect.empty(); }

  /// 0, 1 or 2 of DESIGN section 5.
  [[nodiscard]] int exit_code() const;
};

/// What a person sees while it runs: which part, and how far.
using Progress =
    std::function<void(const std::string& limiter, const std::string& part, std::uint64_t done, std::uint64_t of)>;

/// Judges the limiter of a contract on a private Redis of its own. Deterministic for a seed and a
/// number of cases, the free-running part aside.
[[nodiscard]] Card check(const std::filesystem::path& contract, const Effort& effort, const Progress& progress);

/// The contract's promises as the verdict wants them.
[[nodiscard]] model::Promised promised_by(const harness::Contract& contract);

/// Set from a signal handler: whatever runs stops at its next batch.
extern volatile std::sig_atomic_t interrupted;

}  // namespace weir::gate
