#include "model/bound.h"

#include <rapidcheck/boost_test.h>
#include <boost/test/unit_test.hpp>
#include <vector>

namespace weir::model {
namespace {

Limit limit(std::int64_t capacity, std::int64_t refill, std::int64_t period_us) {
  return Limit::make(capacity, refill, Micros{period_us}).value();
}

Call call(std::int64_t now_us, std::int64_t cost, bool admitted) {
  return {Instant{Micros{now_us}}, cost, admitted};
}

/// The bound as DESIGN 2 words it, window by window.
std::optional<Rational> worst_excess_by_brute_force(const Limit& under, const std::vector<Call>& history) {
  const Rational rate{under.refill(), under.period().count()};
  const Rational time_to_full = under.capacity() / rate;
  std::optional<Rational> worst;
  for (std::size_t first = 0; first < history.size(); ++first) {
    if (!history[first].admitted || history[first].cost == 0) continue;
    // The high-water mark of the stretch that `first` is in.
    Instant high_water = history[0].now;
    for (std::size_t k = 0; k <= first; ++k) {
      const bool fell = (high_water - history[k].now).count() > time_to_full;
      high_water = fell ? history[k].now : std::max(high_water, history[k].now);
    }
    Instant furthest = history[first].now;
    std::int64_t admitted = 0;
    for (std::size_t last = first; last < history.size(); ++last) {
      if ((high_water - history[last].now).count() > time_to_full) break;
      high_water = std::max(high_water, history[last].now);
      furthest = std::max(furthest, history[last].now);
      if (!history[last].admitted || history[last].cost == 0) continue;
      admitted += history[last].cost;
      const Rational excess = admitted - under.capacity() - rate * (furthest - history[first].now).count();
      if (!worst || excess > *worst) worst = excess;
    }
  }
  return worst;
}

BOOST_AUTO_TEST_SUITE(bound_suite)

BOOST_AUTO_TEST_CASE(a_history_without_grants_has_no_window) {
  BOOST_TEST(!worst_window(limit(1, 1, 1000), {}));
  const std::vector<Call> denied{call(0, 1, false), call(5, 1, false)};
  BOOST_TEST(!worst_window(limit(1, 1, 1000), denied));
}

BOOST_AUTO_TEST_CASE(exactly_what_a_window_entitles_to_is_within_the_bound_and_one_token_more_is_not) {
  std::vector<Call> history{call(1000, 3, true), call(2000, 1, true)};
  BOOST_TEST(!worst_window(limit(3, 1, 1000), history)->broken());
  history.push_back(call(2000, 1, true));
  const auto worst = worst_window(limit(3, 1, 1000), history);
  BOOST_TEST(worst->broken());
  BOOST_TEST(worst->first == 0U);
  BOOST_TEST(worst->last == 2U);
  BOOST_TEST(worst->admitted == 5);
  BOOST_TEST((worst->entitled == Rational{4}));
}

BOOST_AUTO_TEST_CASE(a_swing_of_the_clock_entitles_to_its_furthest_reading_once) {
  // To 2 s, back to 1 s and forward again: refilled once, not twice.
  const auto under = limit(2, 1, 1'000'000);
  std::vector<Call> history{call(0, 2, true), call(2'000'000, 2, true), call(1'000'000, 1, false),
                            call(2'000'000, 1, true)};
  const auto worst = worst_window(under, history);
  BOOST_TEST(worst->broken());
  BOOST_TEST(worst->admitted == 3);
  BOOST_TEST((worst->entitled == Rational{2}));
}

BOOST_AUTO_TEST_CASE(a_fall_of_more_than_one_time_to_full_begins_a_new_stretch) {
  const auto under = limit(2, 2, 3);  // time-to-full 3 µs
  const std::vector<Call> at_most{call(10, 2, true), call(7, 2, true)};
  BOOST_TEST(worst_window(under, at_most)->broken());
  const std::vector<Call> further{call(10, 2, true), call(6, 2, true)};
  BOOST_TEST(!worst_window(under, further)->broken());
}

BOOST_AUTO_TEST_CASE(a_peek_opens_no_window) {
  // Else the clock that stepped back between the peek and the grant would be held against the grant.
  const std::vector<Call> history{call(1001, 0, true), call(1000, 1, true), call(2000, 1, true)};
  BOOST_TEST(!worst_window(limit(1, 1, 1000), history)->broken());
}

RC_BOOST_PROP(the_worst_window_is_the_one_that_brute_force_finds, ()) {
  const auto under = limit(*rc::gen::inRange(1, 6), *rc::gen::inRange(1, 6), *rc::gen::inRange(1, 8));
  std::vector<Call> history;
  std::int64_t now_us = 100;
  for (int left = *rc::gen::inRange(0, 30); left > 0; --left) {
    now_us += *rc::gen::element(-12, -7, -3, -1, 0, 0, 0, 1, 1, 2, 3, 5, 9);
    history.push_back(call(now_us, *rc::gen::inRange(0, 4), *rc::gen::arbitrary<bool>()));
  }
  const auto found = worst_window(under, history);
  const auto expected = worst_excess_by_brute_force(under, history);
  RC_ASSERT(found.has_value() == expected.has_value());
  if (!found) return;
  RC_CLASSIFY(found->broken(), "broken");
  RC_ASSERT(found->admitted - found->entitled == *expected);
  // And the window that is named is the one that is meant.
  std::int64_t admitted = 0;
  Instant furthest = history[found->first].now;
  for (std::size_t k = found->first; k <= found->last; ++k) {
    if (history[k].admitted) admitted += history[k].cost;
    furthest = std::max(furthest, history[k].now);
  }
  RC_ASSERT(history[found->first].admitted);
  RC_ASSERT(history[found->last].admitted);
  RC_ASSERT(found->admitted == admitted);
  const Rational rate{under.refill(), under.period().count()};
  RC_ASSERT(found->entitled == under.capacity() + rate * (furthest - history[found->first].now).count());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::model
