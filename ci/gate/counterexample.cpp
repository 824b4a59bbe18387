#include "ci/gate/counterexample.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/shrink.h"

namespace weir::gate {
namespace {

using model::Failure;
using model::History;
using model::Plan;
using model::Scenario;
using model::Verdict;

constexpr std::size_t most_shrink_runs = 2'000;
constexpr std::size_t most_search_runs = 12'000;

const Failure* find(const Verdict& verdict, const std::string& essence) {
  const auto found = std::find_if(verdict.failures.begin(), verdict.failures.end(),
                                  [&](const Failure& failure) { return failure.essence == essence; });
  return found == verdict.failures.end() ? nullptr : &*found;
}

model::Grain grain_of(const Domain& domain) {
  return {.tick_us = domain.tick.count(),
          .least_capacity = domain.capacity.least,
          .least_refill = domain.refill.least,
          .least_period_us = domain.period_us.least,
          .least_cost = domain.cost.least,
          .start = usual_start};
}

/// Small limits of the domain, and those of the scenario itself.
model::Scope scope_below(const Scenario& scenario, const Domain& domain) {
  model::Scope scope;
  const std::int64_t second = 1'000'000;
  const std::int64_t period =
      domain.period_us.least <= second && second <= domain.period_us.most ? second : domain.period_us.least;
  for (const std::int64_t capacity : {1L, 2L, 3L}) {
    for (const std::int64_t refill : {1L, 2L, 3L}) {
      const Plan plan{std::clamp(capacity, domain.capacity.least, domain.capacity.most),
                      std::clamp(refill, domain.refill.least, domain.refill.most), period};
      if (std::find(scope.plans.begin(), scope.plans.end(), plan) == scope.plans.end()) scope.plans.push_back(plan);
    }
  }
  for (const Plan& plan : scenario.plans)
    if (std::find(scope.plans.begin(), scope.plans.end(), plan) == scope.plans.end()) scope.plans.push_back(plan);
  scope.plan_changes = scenario.plans.size() > 1;
  for (const model::TimedCall& call : scenario.calls) {
    scope.tenants = scope.tenants || call.tenant > 0;
    scope.clock_back = scope.clock_back || call.advance_us < 0;
    if (!model::cost_of(call)) scope.bad_costs.push_back(call.cost);
  }
  return scope;
}

}  // namespace

Counterexample smallest_counterexample(const Failure& failure, Scenario scenario, Runner& runner, const Domain& domain,
                                       const model::Promised& promised, const std::function<bool()>& out_of_time) {
  const model::Grain grain = grain_of(domain);
  std::size_t runs = 0;
  bool stopped = false;
  const model::Fails fails = [&](std::span<const Scenario> scenarios) {
    stopped = stopped || out_of_time();
    if (stopped) return std::vector<bool>(scenarios.size(), false);
    runs += scenarios.size();
    std::vector<bool> failed;
    for (const History& history : runner.run(scenarios))
      failed.push_back(find(model::judge(history, promised), failure.essence) != nullptr);
    return failed;
  };

  scenario.calls.resize(failure.call + 1);
  // What the search finds may shrink further than the scope it was found in; each round ends simpler.
  model::Shrunk shrunk = model::shrink(std::move(scenario), grain, fails, most_shrink_runs);
  model::Searched below;
  while (true) {
    below = model::search_below(shrunk.scenario, scope_below(shrunk.scenario, domain), grain, fails, most_search_runs);
    if (!below.found) break;
    shrunk = model::shrink(*below.found, grain, fails, most_shrink_runs);
  }

  Counterexample smallest = confirmed(failure, shrunk.scenario, runner, promised);
  smallest.runs = runs;
  smallest.certified = below.complete && !stopped;
  return smallest;
}

Counterexample confirmed(const Failure& failure, const Scenario& scenario, Runner& runner,
                         const model::Promised& promised) {
  Counterexample twice;
  twice.history = std::move(runner.run(std::span{&scenario, 1}).front());
  twice.verdict = model::judge(twice.history, promised, true);
  const Failure* first = find(twice.verdict, failure.essence);
  const History again = std::move(runner.run(std::span{&scenario, 1}).front());
  twice.second_run_differs = first == nullptr || again.seen != twice.history.seen;
  twice.failure = first != nullptr ? *first : failure;
  return twice;
}

Counterexample interleaving_counterexample(harness::Server& server, harness::LuaHost& host,
                                           const Interleaving& failing) {
  harness::Interleaver interleaver{server, host};
  const InterleavingRun first = run_interleaving(interleaver, failing);
  const InterleavingRun second = run_interleaving(interleaver, failing);
  Counterexample smallest;
  smallest.interleaving = failing;
  smallest.steps = interleaving_text(failing, first);
  smallest.second_run_differs = !first.failure || interleaving_text(failing, second) != smallest.steps;
  smallest.run = first;
  if (!first.failure) return smallest;
  smallest.failure = *first.failure;
  smallest.passing = nearest_passing(interleaver, failing);
  if (const auto& passing = smallest.passing)
    smallest.steps +=
        fmt::format("\n  passes if step {} runs {} step {} ({})\n", passing->step + 1,
                    passing->before ? "before" : "after", passing->beside + 1, harness::show(passing->schedule));
  return smallest;
}

}  // namespace weir::gate
