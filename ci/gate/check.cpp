#include "ci/gate/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <utility>

#include "ci/gate/concurrency.h"
#include "ci/gate/counterexample.h"
#include "ci/gate/generate.h"
#include "ci/gate/report.h"
#include "ci/gate/runner.h"
#include "model/shrink.h"
#include "proptests/harness/error.h"
#include "proptests/harness/lua_host.h"
#include "proptests/harness/server.h"

namespace weir::gate {

volatile std::sig_atomic_t interrupted = 0;

namespace {

using model::Failure;
using model::History;
using model::Promise;
using model::Scenario;
using model::Verdict;
using Clock = std::chrono::steady_clock;

/// One kind of random history. Each part looks at every promise; what it lets happen decides which
/// one a failure comes to stand under.
struct Campaign {
  const char* name;
  Features features;
  std::uint64_t share;  // of the cases
};

std::vector<Campaign> campaigns_for(const Domain& domain) {
  if (domain.fixed_window) return {{"calls", {}, 60}, {"tenants", {.tenants = true}, 40}};
  return {{"calls", {}, 18},
          {"clock steps", {.clock_back = true}, 18},
          {"plan changes", {.plan_changes = true}, 14},
          {"bad input", {.bad_input = true}, 10},
          {"tenants", {.tenants = true}, 8},
          {"everything", {.clock_back = true, .plan_changes = true, .tenants = true}, 32}};
}

/// Short ones reach many limits; long ones reach deep states.
std::size_t random_length(Random& random) {
  return static_cast<std::size_t>(random.percent(60) ? random.between(2, 8) : random.between(9, 48));
}

/// Denied once more after the whole time that a denied call was told to wait.
constexpr std::string_view early_again = "retry.too_short";

/// Calls a pipeline: enough to hide the round trip, few enough to stop at once.
constexpr std::size_t batch_calls = 400;

/// What counts as the same failure before it is small: bad input by field and effect, the rest by line and kind.
std::string key_of(const Failure& failure) {
  return failure.promise == Promise::bad_input ? failure.essence : failure.name();
}

class Check {
 public:
  Check(const std::filesystem::path& contract, const Effort& effort, const Progress& progress)
      : effort_(effort),
        progress_(progress),
        host_(contract),
        runner_(server_, host_),
        domain_(domain_of(host_.contract())),
        promised_(promised_by(host_.contract())) {}

  Card run() {
    const auto began = Clock::now();
    card_.contract = host_.contract();
    card_.redis_version = server_.version();
    for (std::size_t index = 0; index < model::promise_count; ++index)
      card_.lines.push_back({.promise = static_cast<Promise>(index), .note = {}, .counterexamples = {}});
    try {
      random_histories();
      sweep_early_callers();
      concurrency();
    } catch (const OutOfTime& reason) {
      card_.cut_short = reason.why;
    }
    settle_lines();
    card_.decisions = runner_.calls() + concurrent_decisions_;
    card_.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    return std::move(card_);
  }

 private:
  struct OutOfTime {
    std::string why;
  };

  [[nodiscard]] bool is_due() const {
    return interrupted != 0 || (effort_.deadline && Clock::now() >= *effort_.deadline);
  }
  void stop_if_due() const {
    if (is_due()) throw OutOfTime{interrupted != 0 ? "interrupted" : "the budget ran out"};
  }

  [[nodiscard]] std::uint64_t cases_to_try() const {
    return effort_.cases.value_or(host_.contract().script_text.empty() ? 6'000 : 60'000);
  }

  void random_histories() {
    Random random{effort_.seed};
    const std::vector<Campaign> campaigns = campaigns_for(domain_);
    std::vector<std::uint64_t> done(campaigns.size(), 0);
    std::uint64_t all = 0;

    // The server always has the next batch before this one is judged.
    const auto land = [&] { look_at(runner_.land()); };
    const auto land_all = [&] {
      while (runner_.under_way() > 0) land();
    };
    const std::uint64_t cases = cases_to_try();
    while (all < cases) {
      stop_if_due();
      std::size_t next = 0;  // the campaign that is furthest behind its share
      for (std::size_t index = 1; index < campaigns.size(); ++index)
        if (done[index] * campaigns[next].share < done[next] * campaigns[index].share) next = index;

      std::vector<Scenario> batch;
      std::size_t calls = 0;
      const std::size_t wanted = std::min<std::uint64_t>(batch_calls, cases - all);
      while (calls < wanted) {
        batch.push_back(
            generate(domain_, campaigns[next].features, std::min(random_length(random), wanted - calls), random));
        calls += batch.back().calls.size();
      }
      runner_.launch(std::move(batch));
      if (runner_.under_way() > 1) land();
      done[next] += calls;
      all += calls;
      if (progress_) progress_(card_.contract.name, campaigns[next].name, all, cases);
      shrink_what_waits(land_all);
    }
    land_all();
    shrink_what_waits(land_all);
  }

  /// What it finds stands in for what random histories found in as many calls: it is the same from any seed.
  void sweep_early_callers() {
    const bool hangs = known_.contains("exact.no_reply");  // each call of the sweep would wait for its deadline
    if (domain_.fixed_window || !host_.contract().replies_retry || hangs) return;
    constexpr std::size_t together = 100;
    const std::vector<Scenario> histories = early_callers(domain_, std::min<std::uint64_t>(4'000, cases_to_try() / 15));
    for (std::size_t done = 0; done < histories.size(); done += together) {
      stop_if_due();
      if (progress_) progress_(card_.contract.name, "early callers", done, histories.size());
      const auto batch = std::span{histories}.subspan(done, std::min(together, histories.size() - done));
      for (const History& history : runner_.run(batch)) {
        for (const Failure& failure : model::judge(history, promised_).failures) {
          if (failure.name() != early_again || failure.call + 1 != history.scenario.calls.size()) continue;
          auto& held = card_.lines[static_cast<std::size_t>(failure.promise)].counterexamples;
          std::erase_if(held, [&](const Counterexample& found) {
            return found.failure.name() == early_again && found.history.scenario.calls.size() > failure.call;
          });
          return keep(confirmed(failure, history.scenario, runner_, promised_));
        }
      }
    }
  }

  void look_at(const std::vector<History>& histories) {
    for (const History& history : histories) {
      const Verdict verdict = model::judge(history, promised_);
      card_.coverage += verdict.coverage;
      for (const Failure& failure : verdict.failures) {
        // What is known is shrunk once more at the most: its smallest form may stand under another line.
        if (known_[key_of(failure)]++ > 0) continue;
        waiting_.emplace_back(failure, history.scenario);
      }
    }
  }

  template <class Land>
  void shrink_what_waits(const Land& land_all) {
    if (waiting_.empty()) return;
    land_all();
    while (!waiting_.empty()) {
      auto [failure, scenario] = std::move(waiting_.back());
      waiting_.pop_back();
      if (progress_) progress_(card_.contract.name, "smallest counterexample", 0, 0);
      Counterexample smallest = smallest_counterexample(failure, std::move(scenario), runner_, domain_, promised_,
                                                        [this] { return is_due(); });
      keep(std::move(smallest));
    }
  }

  void keep(Counterexample smallest) {
    ++known_[key_of(smallest.failure)];
    Line& line = card_.lines[static_cast<std::size_t>(smallest.failure.promise)];
    for (Counterexample& held : line.counterexamples) {
      if (key_of(held.failure) != key_of(smallest.failure)) continue;
      if (model::simpler(smallest.history.scenario, held.history.scenario)) held = std::move(smallest);
      return;
    }
    line.counterexamples.push_back(std::move(smallest));
  }

  void concurrency() {
    Line& line = card_.lines[static_cast<std::size_t>(Promise::concurrency)];
    ConcurrencyResult result;
    try {
      result = judge_concurrency(server_, host_, domain_, effort_.seed, [this](std::uint64_t done) {
        stop_if_due();
        if (progress_) progress_(card_.contract.name, "interleavings", done, 0);
      });
    } catch (const harness::NoReply& no_reply) {
      line.status = Line::Status::inconclusive;
      line.note = std::string{"a call did not end: "} + no_reply.what();
      server_.recover_from_busy_script();
      return;
    }
    concurrency_done_ = true;
    concurrent_decisions_ = result.decisions;
    if (result.failing) {
      line.counterexamples.push_back(interleaving_counterexample(server_, host_, *result.failing));
      line.counterexamples.back().certified = result.certified;
      return;
    }
    line.note = fmt::format("{} interleavings (clients x calls: all of {}{}{})", result.interleavings, result.all_of,
                            result.random_of.empty() ? "" : "; random ", result.random_of);
    if (result.parallel_takes == 0) return;
    line.note += fmt::format(", {} takes from 16 threads at once: {} of {}", result.parallel_takes,
                             result.parallel_admitted, result.parallel_capacity);
    if (result.parallel_admitted != result.parallel_capacity)
      line.status = Line::Status::fail;
    else if (result.most_in_flight < 2) {
      line.status = Line::Status::inconclusive;
      line.note = "no two calls were in flight at once";
    }
  }

  /// A line that saw too little to mean anything says so.
  void settle_lines() {
    const model::Coverage& seen = card_.coverage;
    const auto need = [&](Promise promise, bool met, const char* missing) {
      Line& line = card_.lines[static_cast<std::size_t>(promise)];
      if (line.status != Line::Status::pass || met || (promise == Promise::concurrency && concurrency_done_)) return;
      line.status = Line::Status::inconclusive;
      line.note = missing;
    };
    const auto leave_out = [&](Promise promise, const char* why) {
      Line& line = card_.lines[static_cast<std::size_t>(promise)];
      if (!line.counterexamples.empty()) return;
      line.status = Line::Status::not_promised;
      line.note = why;
    };
    for (Line& line : card_.lines) {
      if (!line.counterexamples.empty()) line.status = Line::Status::fail;
      // In the same order whatever the seed, the worst first.
      std::sort(line.counterexamples.begin(), line.counterexamples.end(), [](const auto& left, const auto& right) {
        const auto key = [](const Failure& failure) { return std::pair{severity(failure), failure.name()}; };
        return key(left.failure) < key(right.failure);
      });
    }

    card_.contract = host_.contract();  // it has learned by now what reply() tells
    const bool window = promised_.fixed_window;
    if (window) {
      leave_out(Promise::no_trace, "a fixed window promises nothing about writes");
      leave_out(Promise::bad_input, "the contract's cost and limits are fixed");
      leave_out(Promise::clock, "a fixed window is as good as its clock");
      leave_out(Promise::plan, "a fixed window promises nothing about changed limits");
    }
    if (!card_.contract.replies_retry) leave_out(Promise::retry, "no retry time is told");
    if (!card_.contract.replies_remaining && !card_.contract.replies_reset)
      leave_out(Promise::remaining, "neither remaining nor reset is told");

    if (!card_.cut_short.empty()) {
      const std::string why = card_.cut_short + " before it was through";
      for (Line& line : card_.lines) need(line.promise, false, why.c_str());
      return;
    }
    need(Promise::bound, seen.emptied > 0, "no bucket was emptied");
    need(Promise::exact, seen.emptied > 0 && seen.denied > 0 && seen.at_boundary > 0 && seen.before_boundary > 0,
         "the instant that flips an answer was not hit");
    need(Promise::retry, seen.at_boundary > 0 && seen.before_boundary > 0, "no denied call came back at the told time");
    need(Promise::lifetime, seen.expired > 0, "no key was seen to expire");
    need(Promise::no_trace, seen.denied > 0, "nothing was denied");
    need(Promise::bad_input, seen.bad_input > 0, "no bad input was tried");
    need(Promise::clock, seen.clock_back > 0, "the clock never stepped back");
    need(Promise::plan, seen.plan_changed > 0, "no limit was changed");
    need(Promise::tenants, seen.two_tenants > 0, "there was one tenant only");
  }

  const Effort& effort_;
  const Progress& progress_;
  harness::LuaHost host_;  // before the server: its child is forked while we are alone
  harness::Server server_;
  Runner runner_;
  Domain domain_;
  model::Promised promised_;
  Card card_;
  std::map<std::string, int> known_;
  std::vector<std::pair<Failure, Scenario>> waiting_;
  std::uint64_t concurrent_decisions_ = 0;
  bool concurrency_done_ = false;
};

}  // namespace

Card::Outcome Card::outcome() const {
  Outcome worst = Outcome::pass;
  for (const Line& line : lines) {
    if (line.status == Line::Status::fail) return Outcome::fail;
    if (line.status == Line::Status::inconclusive) worst = Outcome::inconclusive;
  }
  return worst;
}

bool Card::as_expected() const {
  return std::all_of(lines.begin(), lines.end(), [&](const Line& line) {
    const auto said = contract.expect.find(std::string{name(line.promise)});
    const bool should_fail = said != contract.expect.end() && said->second == "fail";
    if (should_fail) return line.status == Line::Status::fail;
    return line.status == Line::Status::pass || line.status == Line::Status::not_promised;
  });
}

int Card::exit_code() const {
  bool differs = false;
  bool surprise = false;
  bool open = false;
  for (const Line& line : lines) {
    const auto said = contract.expect.find(std::string{name(line.promise)});
    const bool should_fail = said != contract.expect.end() && said->second == "fail";
    for (const Counterexample& found : line.counterexamples) differs = differs || found.second_run_differs;
    if (line.status == Line::Status::inconclusive)
      open = true;
    else if (should_fail != (line.status == Line::Status::fail))
      surprise = true;
  }
  if (surprise && !differs) return 1;
  return differs || open ? 2 : 0;
}

Card check(const std::filesystem::path& contract, const Effort& effort, const Progress& progress) {
  return Check{contract, effort, progress}.run();
}

model::Promised promised_by(const harness::Contract& contract) {
  const Domain domain = domain_of(contract);
  return {.fixed_window = domain.fixed_window,
          .own_rules = domain.own_rules,
          .tick = domain.tick,
          .resolution = domain.resolution};
}

}  // namespace weir::gate
