// What does a decision cost where nothing else does: no clock, no lock, no network?
//
// Each case feeds the state it wrote back into the next call, as a caller would; the clock is an
// integer that the loop moves. Nanoseconds a decision, on one thread.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "weir/bucket.h"

namespace {

using namespace std::chrono_literals;

constexpr weir::Limit hundred_a_second = weir::Limit::make(100, 100, 1s).value();
constexpr weir::Limit two_hundred_a_second = weir::Limit::make(200, 200, 1s).value();
constexpr weir::Limit seven_in_three_seconds = weir::Limit::make(7, 7, 3s).value();
constexpr weir::Cost one = weir::Cost::make(1).value();
constexpr weir::Cost too_many = weir::Cost::make(1'000).value();
constexpr weir::Instant start{1'764'547'200s};  // 2025-12-01

/// Decides over and over, with each of `plans` in turn, and lets the clock move by `step` between two
/// calls. Any other outcome than `expected` ends the benchmark: it would be a number about something else.
void decide_again(benchmark::State& state, std::vector<weir::Limit> plans, std::optional<weir::Bucket> bucket,
                  weir::Micros step, weir::Cost cost, weir::Outcome expected) {
  weir::Instant now = start;
  std::size_t turn = 0;
  benchmark::DoNotOptimize(plans.data());  // limits come from a configuration, not from the compiler
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(bucket);
    weir::Step decided = weir::decide(plans[turn], bucket, now, cost);
    benchmark::DoNotOptimize(decided);  // all of it: remaining and reset_after are asked for as well
    if (decided.decision.outcome != expected) return state.SkipWithError("decided otherwise than this case is about");
    if (decided.write) bucket = decided.write;
    now += step;
    if (++turn == plans.size()) turn = 0;
  }
  state.SetItemsProcessed(state.iterations());
}

weir::Bucket empty_bucket(const weir::Limit& limit) {
  return {limit.capacity_units(), start, limit.refill(), limit.units_per_token()};
}

void BM_Decide_Allowed(benchmark::State& state) {
  // One token comes back in the time between two calls, which each take one.
  decide_again(state, {hundred_a_second}, std::nullopt, 10ms, one, weir::Outcome::allowed);
}
BENCHMARK(BM_Decide_Allowed);

void BM_Decide_Denied(benchmark::State& state) {
  // Held at an empty bucket: what a tenant far over its limit costs.
  decide_again(state, {hundred_a_second}, empty_bucket(hundred_a_second), 0us, one, weir::Outcome::denied);
}
BENCHMARK(BM_Decide_Denied);

void BM_Decide_Never(benchmark::State& state) {
  decide_again(state, {hundred_a_second}, empty_bucket(hundred_a_second), 0us, too_many, weir::Outcome::never);
}
BENCHMARK(BM_Decide_Never);

void BM_Decide_ClockBack(benchmark::State& state) {
  // The refill un-happens on each call, up to the debt at which it is capped.
  decide_again(state, {hundred_a_second}, empty_bucket(hundred_a_second), -1us, one, weir::Outcome::denied);
}
BENCHMARK(BM_Decide_ClockBack);

void BM_Decide_PlanChanged(benchmark::State& state) {
  // Two callers with two plans take turns, as during a rollout: the debt is converted each time, in 128 bits.
  decide_again(state, {two_hundred_a_second, seven_in_three_seconds}, std::nullopt, 1s, one, weir::Outcome::allowed);
}
BENCHMARK(BM_Decide_PlanChanged);

}  // namespace

BENCHMARK_MAIN();
