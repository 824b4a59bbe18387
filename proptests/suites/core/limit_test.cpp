#include "weir/limit.h"

#include <rapidcheck/boost_test.h>
#include <boost/test/unit_test.hpp>
#include <string>

#include "model/bucket.h"
#include "weir/decision.h"

namespace weir {
namespace {

using Reason = LimitError::Reason;

constexpr auto make(std::int64_t capacity, std::int64_t refill, std::int64_t period_us) {
  return Limit::make(capacity, refill, Micros{period_us});
}

static_assert(make(10, 2, 2'000'000).value() == make(10, 1, 1'000'000).value());
static_assert(make(10, 4, 6).value().refill() == 2);
static_assert(make(10, 4, 6).value().units_per_token() == 3);
static_assert(make(10, 4, 6).value().capacity_units() == 30);
static_assert(make(10, 4, 6).value().time_to_full() == Micros{15});
static_assert(make(10, 4, 6).value().emission_interval() == Micros{2});

static_assert(make(0, 1, 1).error().reason == Reason::capacity_out_of_range);
static_assert(make(-1, 1, 1).error().reason == Reason::capacity_out_of_range);
static_assert(make(1, 0, 1).error().reason == Reason::refill_out_of_range);
static_assert(make(1, 1, 0).error().reason == Reason::period_out_of_range);
static_assert(make(max_quantity, 1, 1).has_value());
static_assert(make(max_quantity + 1, 1, 1).error().reason == Reason::capacity_out_of_range);
static_assert(make(1, 1, max_quantity).has_value());
static_assert(make(2, 1, max_quantity).error().reason == Reason::does_not_fit);
static_assert(make(2, 2, max_quantity).has_value());  // reduced, it does
static_assert(make(2, 1, max_quantity).error().capacity_that_fits() == 1);

static_assert(Cost::make(max_quantity).has_value());
static_assert(!Cost::make(max_quantity + 1).has_value());
static_assert(!Cost::make(-1).has_value());
static_assert(Cost::make(0).value().is_peek());

BOOST_AUTO_TEST_SUITE(limit_suite)

BOOST_AUTO_TEST_CASE(a_limit_that_does_not_fit_is_refused_with_the_nearest_that_does) {
  const auto refused = make(100'003, 100'003, 86'400'000'000);
  BOOST_TEST(refused.error().message() ==
             "capacity 100003 refilled by 100003 every 86400000000 us does not fit: capacity * period, once refill and "
             "period are divided by their greatest common divisor, must stay within 2^51; what fits is capacity 26062 "
             "at this rate, or refill 100002 with this capacity");
  BOOST_TEST(make(26'062, 100'003, 86'400'000'000).has_value());
  BOOST_TEST(!make(26'063, 100'003, 86'400'000'000).has_value());
  BOOST_TEST(make(100'003, 100'002, 86'400'000'000).has_value());
}

BOOST_AUTO_TEST_CASE(an_error_names_the_argument_what_was_given_and_the_range) {
  const std::string range = "; it must be a whole number from 1 to 2^51 (2251799813685248)";
  BOOST_TEST(make(-7, 1, 1).error().message() == "capacity is -7" + range);
  BOOST_TEST(make(1, 0, 1).error().message() == "refill is 0" + range);
  BOOST_TEST(make(1, 1, -1).error().message() == "period_us is -1" + range);
  BOOST_TEST(Cost::make(-1).error().message() ==
             "cost is -1; it must be a whole number from 0 (a peek) to 2^51 (2251799813685248)");
}

RC_BOOST_PROP(a_limit_is_refused_exactly_where_its_units_pass_2_51_and_what_is_named_instead_fits, ()) {
  const auto quantity = [] {  // small ones, and those within a factor of the edge
    const int bits = *rc::gen::inRange(0, 52);
    return std::min(max_quantity, (std::int64_t{1} << bits) + *rc::gen::inRange<std::int64_t>(0, 1'000'000));
  };
  const auto capacity = quantity();
  const auto refill = quantity();
  const auto period_us = quantity();
  const auto made = make(capacity, refill, period_us);
  const model::Rational tokens_per_us{refill, period_us};
  const bool fits = capacity * model::Integer{denominator(tokens_per_us)} <= max_quantity;
  RC_CLASSIFY(fits, "fits");
  RC_ASSERT(made.has_value() == fits);
  if (fits) {
    RC_ASSERT(made->refill() == model::Integer{numerator(tokens_per_us)});
    RC_ASSERT(made->units_per_token() == model::Integer{denominator(tokens_per_us)});
    return;
  }
  RC_ASSERT(make(made.error().capacity_that_fits(), refill, period_us).has_value());
  RC_ASSERT(!make(made.error().capacity_that_fits() + 1, refill, period_us).has_value());
  if (const auto nearest = made.error().refill_that_fits()) RC_ASSERT(make(capacity, *nearest, period_us).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
