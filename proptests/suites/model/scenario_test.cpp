#include "model/scenario.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "model/shrink.h"

namespace weir::model {
namespace {

BOOST_AUTO_TEST_SUITE(scenario_suite)

BOOST_AUTO_TEST_CASE(a_plan_is_a_limit_where_it_is_valid_and_fits) {
  BOOST_TEST((Plan{2, 1, 1'000'000}).limit().has_value());
  BOOST_TEST(!(Plan{0, 1, 1'000'000}).limit());
  BOOST_TEST(!(Plan{max_quantity, 1, 1'000'000}).limit());
  BOOST_TEST(!(Plan{Quantity{std::string{"2"}}, 1, 1'000'000}).limit());
}

BOOST_AUTO_TEST_CASE(a_cost_is_one_where_it_is_whole_and_in_range) {
  const auto is_cost = [](const Quantity& cost) {
    return cost_of({.advance_us = 0, .tenant = 0, .plan = 0, .cost = cost}).has_value();
  };
  BOOST_TEST(is_cost(0));
  BOOST_TEST(is_cost(max_quantity));
  BOOST_TEST(!is_cost(-1));
  BOOST_TEST(!is_cost(max_quantity + 1));
  BOOST_TEST(!is_cost(Quantity{std::string{"1"}}));
}

BOOST_AUTO_TEST_CASE(a_canonical_scenario_has_the_plans_it_uses_and_tenants_by_first_appearance) {
  const Plan small{1, 1, 1'000'000};
  const Plan large{9, 1, 1'000'000};
  const Scenario scenario{.start = {},
                          .plans = {small, large, small},
                          .calls = {{.advance_us = 0, .tenant = 1, .plan = 2, .cost = 1},
                                    {.advance_us = 5, .tenant = 0, .plan = 0, .cost = 1}}};
  const Scenario expected{.start = {},
                          .plans = {small},
                          .calls = {{.advance_us = 0, .tenant = 0, .plan = 0, .cost = 1},
                                    {.advance_us = 5, .tenant = 1, .plan = 0, .cost = 1}}};
  BOOST_TEST((canonical(scenario) == expected));
  BOOST_TEST((canonical(expected) == expected));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::model
