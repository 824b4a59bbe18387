#include "weir/bucket.h"

#include <rapidcheck/boost_test.h>
#include <boost/test/unit_test.hpp>

#include "model/bucket.h"
#include "proptests/suites/support/limiters.h"
#include "proptests/suites/support/show.h"
#include "proptests/suites/support/walk.h"

namespace weir {
namespace {

// Examples, a row per instant, checked by the compiler.

constexpr Limit limit(std::int64_t capacity, std::int64_t refill, std::int64_t period_us) {
  return Limit::make(capacity, refill, Micros{period_us}).value();
}
constexpr Instant at(std::int64_t us) {
  return Instant{Micros{us}};
}
constexpr Cost cost(std::int64_t tokens) {
  return Cost::make(tokens).value();
}

constexpr Decision allowed(std::int64_t remaining, std::int64_t reset_us) {
  return {Outcome::allowed, remaining, Micros{0}, Micros{reset_us}};
}
constexpr Decision denied(std::int64_t remaining, std::int64_t retry_us, std::int64_t reset_us) {
  return {Outcome::denied, remaining, Micros{retry_us}, Micros{reset_us}};
}
constexpr Decision never(std::int64_t remaining, std::int64_t reset_us) {
  return {Outcome::never, remaining, std::nullopt, Micros{reset_us}};
}

constexpr auto three_a_second = limit(3, 3, 1'000'000);  // one token is 10^6 units, 3 a µs
constexpr Bucket owing(std::int64_t debt, std::int64_t as_of_us) {
  return {debt, at(as_of_us), 3, 1'000'000};
}

// A full bucket gives what it has, and a grant is written.
static_assert(decide(three_a_second, {}, at(7), cost(1)) == Step{allowed(2, 333'334), owing(1'000'000, 7)});
static_assert(decide(three_a_second, {}, at(7), cost(3)) == Step{allowed(0, 1'000'000), owing(3'000'000, 7)});
// An empty one refuses, without a trace, and what it tells is enough and no more than enough.
static_assert(decide(three_a_second, owing(3'000'000, 7), at(7), cost(1)) == Step{denied(0, 333'334, 1'000'000), {}});
static_assert(decide(three_a_second, owing(3'000'000, 7), at(333'340), cost(1)).decision == denied(0, 1, 666'667));
static_assert(decide(three_a_second, owing(3'000'000, 7), at(333'341), cost(1)) ==
              Step{allowed(0, 1'000'000), owing(2'999'998, 333'341)});
// A peek reads, and answers by the same line.
static_assert(decide(three_a_second, owing(3'000'000, 7), at(7), peek) == Step{allowed(0, 1'000'000), {}});
static_assert(decide(three_a_second, owing(4'000'000, 7), at(7), peek) == Step{denied(0, 333'334, 1'333'334), {}});
// What can never fit is told so, and what is left is told still.
static_assert(decide(three_a_second, owing(1'000'000, 7), at(7), cost(4)) == Step{never(2, 333'334), {}});
static_assert(decide(three_a_second, {}, at(7), cost(max_quantity)) == Step{never(3, 0), {}});
// A clock that steps back takes its refill back, and a denial then is written.
static_assert(decide(three_a_second, owing(0, 100), at(0), cost(3)).decision == denied(2, 100, 100));
static_assert(decide(three_a_second, owing(3'000'000, 100), at(0), cost(1)) ==
              Step{denied(0, 333'434, 1'000'100), owing(3'000'300, 0)});
static_assert(decide(three_a_second, owing(3'000'000, 100), at(0), peek).write == std::nullopt);
// However far: two capacities are the most that can be missing.
static_assert(debt_at(three_a_second, owing(0, 3'600'000'000), at(0)) == 6'000'000);
// A lower capacity cuts the debt first and lets time run then.
static_assert(debt_at(limit(1, 3, 1'000'000), owing(6'000'000, 0), at(1)) == 1'999'997);
// A change of plan: the old one governs up to now, then the debt is rounded up to a unit of the new.
static_assert(decide(limit(3, 1, 7), owing(1'000'000, 0), at(1), cost(3)) ==
              Step{denied(2, 7, 7), Bucket{7, at(1), 1, 7}});
static_assert(decide(limit(3, 6, 2'000'000), owing(1'000'000, 0), at(0), cost(3)).write == std::nullopt);  // the same
// What is kept, and how long: until the debt is gone and one time-to-full more.
static_assert(lifetime(three_a_second, 0) == Micros{1'000'000});
static_assert(lifetime(three_a_second, 1) == Micros{1'000'001});
// The edge of what there is.
static_assert(decide(limit(max_quantity, max_quantity, 1), {}, max_instant, cost(max_quantity)).decision ==
              allowed(0, 1));
static_assert(debt_at(limit(1, 1, max_quantity), Bucket{2 * max_quantity, max_instant, 1, max_quantity}, at(0)) ==
              2 * max_quantity);
static_assert(debt_at(limit(max_quantity, 1, 1), Bucket{0, max_instant, max_quantity, 1}, at(0)) == 2 * max_quantity);

BOOST_AUTO_TEST_SUITE(decide_suite)

/// What the walks below have met, in calls.
struct Met {
  int allowed = 0, denied = 0, never = 0, expired = 0, back = 0, plan_changed = 0, written_denials = 0;
} met;

void expect_equal_to_the_model(const suites::Terrain& terrain) {
  suites::Walk walk{terrain};
  std::optional<model::State> state = model::init();
  std::optional<Bucket> bucket;
  std::optional<model::Output> written;
  for (int left = *rc::gen::inRange(1, 100); left > 0; --left) {
    const model::Input input = walk.next(state);
    if (state && walk.forgets(*written, input.now)) {
      state.reset();
      bucket.reset();
      ++met.expired;
    }
    const model::Output right = model::step(state, input);
    const Step step = decide(input.limit, bucket, input.now, input.cost);
    RC_LOG() << input << "\n    " << right.decision << (right.writes ? ", written" : "") << std::endl;
    met.allowed += right.decision.allowed();
    met.denied += right.decision.outcome == Outcome::denied;
    met.never += right.decision.outcome == Outcome::never;
    met.back += bucket && input.now < bucket->as_of;
    met.plan_changed += bucket && !written_under(*bucket, input.limit);
    met.written_denials += right.writes && !right.decision.allowed();
    RC_ASSERT(step.decision == right.decision);
    RC_ASSERT(step.write.has_value() == right.writes);
    if (right.writes) {
      RC_ASSERT(*step.write == suites::in_units(*right.after));
      RC_ASSERT(input.now + lifetime(input.limit, step.write->debt) == right.alive_until);
      written = right;
    }
    state = right.after;
    if (step.write) bucket = step.write;
  }
}

RC_BOOST_PROP(core_decides_and_stores_what_the_model_does, ()) {
  expect_equal_to_the_model({});
}

RC_BOOST_PROP(core_equals_the_model_at_both_ends_of_time, ()) {
  const bool late = *rc::gen::arbitrary<bool>();
  expect_equal_to_the_model({.earliest = late ? max_instant - Micros{1'000'000} : Instant{},
                             .latest = late ? max_instant : Instant{Micros{1'000'000}}});
}

BOOST_AUTO_TEST_CASE(the_walks_met_what_they_were_to_meet) {
  for (const int count :
       {met.allowed, met.denied, met.never, met.expired, met.back, met.plan_changed, met.written_denials}) {
    BOOST_TEST(count > 10);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
