#include "model/verdict.h"

#include <rapidcheck/boost_test.h>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "proptests/suites/support/honest.h"

namespace weir::model {
namespace {

constexpr Promised ours{.fixed_window = false, .own_rules = true, .tick = Micros{1}, .resolution = Micros{1'000}};
constexpr Promised anyones{.fixed_window = false, .own_rules = false, .tick = Micros{1}, .resolution = Micros{1'000}};
constexpr Instant start{Micros{1'767'225'600'000'000}};
constexpr std::int64_t second = 1'000'000;

/// Two tokens, one more each second.
const Plan two_a_second_apart{2, 1, second};

TimedCall call(std::int64_t cost, std::int64_t advance_us = 0) {
  return {.advance_us = advance_us, .tenant = 0, .plan = 0, .cost = cost};
}

Scenario calls(std::vector<TimedCall> made, std::vector<Plan> plans = {two_a_second_apart}) {
  return {.start = start, .plans = std::move(plans), .calls = std::move(made)};
}

std::vector<std::string> names_of(const Verdict& verdict) {
  std::vector<std::string> names;
  for (const Failure& failure : verdict.failures) names.push_back(failure.name());
  return names;
}

using Lie = std::function<void(Observation&)>;

/// What an honest limiter is blamed for, had it been seen to do `lie` in its last call.
std::string blame(const Scenario& scenario, const Lie& lie, const Promised& promised = ours) {
  History history = suites::honest_history(scenario);
  lie(history.seen.back());
  std::string blamed;
  for (const std::string& name : names_of(judge(history, promised))) blamed += (blamed.empty() ? "" : " ") + name;
  return blamed;
}

const Scenario denied = calls({call(2), call(1)});
const Scenario allowed = calls({call(1)});
const Scenario never = calls({call(3)});

Scenario bad_cost(std::int64_t cost) {
  return calls({call(1), call(cost)});
}

struct Example {
  const char* blamed;
  Scenario scenario;
  Lie lie;
};

BOOST_AUTO_TEST_SUITE(verdict_suite)

BOOST_AUTO_TEST_CASE(every_lie_is_blamed_as_what_it_is) {
  const Scenario clock_back = calls({call(2), call(1, -1'000)});
  const Scenario new_plan =
      calls({call(2), {.advance_us = 0, .tenant = 0, .plan = 1, .cost = 1}}, {two_a_second_apart, {2, 3, 2 * second}});
  const Scenario two_tenants = calls({call(2), {.advance_us = 0, .tenant = 1, .plan = 0, .cost = 2}});
  const std::vector<Example> examples{
      {"exact.over_admission bound.over_admission", denied, [](Observation& seen) { seen.allowed = true; }},
      {"exact.wrongly_denied", allowed, [](Observation& seen) { seen.allowed = false; }},
      {"exact.cost_above_capacity_allowed bound.over_admission", never, [](Observation& seen) { seen.allowed = true; }},
      {"exact.error_reply", allowed, [](Observation& seen) { seen.kind = Observation::Kind::error; }},
      {"exact.malformed_reply", allowed, [](Observation& seen) { seen.kind = Observation::Kind::malformed; }},
      {"exact.no_reply", allowed, [](Observation& seen) { seen.kind = Observation::Kind::no_reply; }},
      {"exact.did_not_write", allowed, [](Observation& seen) { seen.writes = 0; }},
      {"exact.wrong_state", allowed, [](Observation& seen) { ++seen.stored->debt; }},
      {"exact.wrong_state", allowed, [](Observation& seen) { seen.stored->as_of += Micros{1}; }},
      {"exact.unreadable_state", allowed, [](Observation& seen) { seen.unreadable = true; }},
      {"retry.too_short", denied, [](Observation& seen) { *seen.retry_after_us -= 1'000; }},
      {"retry.too_long", denied, [](Observation& seen) { *seen.retry_after_us += 1'000; }},
      {"retry.told_never", denied, [](Observation& seen) { seen.told_never = true; }},
      {"retry.told_when_allowed", allowed, [](Observation& seen) { seen.retry_after_us = 1'000; }},
      {"retry.told_to_retry_never", never, [](Observation& seen) { seen.retry_after_us = 1'000; }},
      {"remaining.wrong_remaining", allowed, [](Observation& seen) { ++*seen.remaining; }},
      {"remaining.wrong_reset", allowed, [](Observation& seen) { *seen.reset_after_us -= 1'000; }},
      {"no_trace.wrote_on_denial", denied, [](Observation& seen) { seen.writes = 1; }},
      {"no_trace.wrote_on_never", never, [](Observation& seen) { seen.writes = 1; }},
      {"no_trace.wrote_on_peek", calls({call(0)}), [](Observation& seen) { seen.writes = 1; }},
      {"lifetime.no_expiry", allowed, [](Observation& seen) { seen.endless = true; }},
      {"lifetime.nothing_kept", allowed, [](Observation& seen) { seen.present = false; }},
      {"lifetime.too_short lifetime.until_differs", allowed,
       [](Observation& seen) { seen.first_expiry_ms = --*seen.last_expiry_ms; }},
      {"lifetime.too_long lifetime.until_differs", allowed, [](Observation& seen) { *seen.last_expiry_ms += 60'000; }},
      {"tenants.undeclared_key", allowed, [](Observation& seen) { seen.strays = 1; }},
      {"clock.did_not_write", clock_back, [](Observation& seen) { seen.writes = 0; }},
      {"clock.over_admission bound.over_admission", clock_back, [](Observation& seen) { seen.allowed = true; }},
      {"clock.retry_too_short", clock_back, [](Observation& seen) { *seen.retry_after_us -= 1'000; }},
      {"plan.over_admission", new_plan, [](Observation& seen) { seen.allowed = true; }},
      {"plan.remaining_wrong_remaining", new_plan, [](Observation& seen) { ++*seen.remaining; }},
      {"tenants.wrongly_denied", two_tenants, [](Observation& seen) { seen.allowed = false; }},
      {"bad_input.negative_cost.no_error", bad_cost(-1),
       [](Observation& seen) {
         seen.kind = Observation::Kind::answered;
         seen.allowed = true;
       }},
      {"bad_input.negative_cost.error_wrote", bad_cost(-1), [](Observation& seen) { seen.writes = 1; }},
      {"bad_input.negative_cost.no_expiry", bad_cost(-1), [](Observation& seen) { seen.endless = true; }},
      {"bad_input.huge_cost.no_error", bad_cost(max_quantity + 1),
       [](Observation& seen) { seen.kind = Observation::Kind::answered; }},
  };
  for (const Example& example : examples) BOOST_TEST(blame(example.scenario, example.lie) == example.blamed);
}

BOOST_AUTO_TEST_CASE(what_only_our_script_promises_is_not_asked_of_others) {
  BOOST_TEST(blame(
                 allowed, [](Observation& seen) { seen.writes = 0; }, anyones) == "");
  BOOST_TEST(blame(
                 allowed, [](Observation& seen) { seen.unreadable = true; }, anyones) == "");
  BOOST_TEST(blame(
                 calls({{.advance_us = 0, .tenant = 0, .plan = 0, .cost = Quantity{std::string{"1.5"}}}}),
                 [](Observation& seen) {
                   seen.kind = Observation::Kind::answered;
                   seen.allowed = true;
                 },
                 anyones) == "");
}

BOOST_AUTO_TEST_CASE(what_a_limiter_does_not_tell_is_not_judged) {
  BOOST_TEST(blame(denied, [](Observation& seen) {
               seen.retry_after_us.reset();
               seen.remaining.reset();
               seen.reset_after_us.reset();
             }) == "");
}

BOOST_AUTO_TEST_CASE(a_wait_that_was_told_and_was_not_enough_is_blamed_on_the_wait) {
  BOOST_TEST(blame(calls({call(2), call(1), call(1, second)}), [](Observation& seen) { seen.allowed = false; }) ==
             "retry.too_short");
}

BOOST_AUTO_TEST_CASE(tokens_from_a_negative_cost_are_minted_and_a_bucket_it_broke_is_spoilt) {
  const Scenario later = calls({call(2), call(-1), call(1)});
  BOOST_TEST(blame(later, [](Observation& seen) { seen.allowed = true; }) == "bad_input.negative_cost.minted");
  const Scenario full = calls({call(-1), call(1)});
  BOOST_TEST(blame(full, [](Observation& seen) { seen.allowed = false; }) == "bad_input.negative_cost.spoilt");
}

BOOST_AUTO_TEST_CASE(a_fixed_window_owes_its_count_and_no_more) {
  constexpr Promised window{.fixed_window = true, .own_rules = false, .tick = Micros{1}, .resolution = Micros{1}};
  History history{calls({call(2), call(1, second - 1), call(2, 1)}, {{2, 2, second}}), {}};
  for (const bool admitted : {true, false, true}) {
    Observation& seen = history.seen.emplace_back();
    seen.allowed = admitted;
    seen.writes = admitted ? 1 : 0;
    seen.present = true;
    seen.first_expiry_ms = seen.last_expiry_ms = start.time_since_epoch().count() / 1'000 + 2'000;
  }
  BOOST_TEST(names_of(judge(history, window)).empty());
  history.seen[1].allowed = true;
  BOOST_TEST(names_of(judge(history, window)) == std::vector<std::string>{"bound.over_admission"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(nothing_is_judged_after_the_call_in_which_the_two_buckets_part) {
  History history = suites::honest_history(calls({call(2), call(1), call(1), call(1)}));
  for (Observation& seen : history.seen) seen.allowed = true;
  const Verdict verdict = judge(history, anyones);
  BOOST_TEST_REQUIRE(verdict.failures.size() == 2);
  BOOST_TEST(verdict.failures.front().call == 1);
  BOOST_TEST(verdict.expected.size() == 2);
}

BOOST_AUTO_TEST_CASE(a_failure_says_why_in_numbers) {
  const auto why = [](const Scenario& scenario, const Lie& lie) {
    History history = suites::honest_history(scenario);
    lie(history.seen.back());
    return judge(history, ours, true).failures.front().why;
  };
  BOOST_TEST(why(denied, [](Observation& seen) { seen.allowed = true; }) ==
             "a cost of 1 was allowed; the model has 0 tokens and denies it, for another 1 s");
  BOOST_TEST(why(denied, [](Observation& seen) { *seen.retry_after_us -= 1'000; }) ==
             "a denied call was told to wait 999 ms; the model still denies it until 1 s have passed");
  BOOST_TEST(why(allowed, [](Observation& seen) { seen.first_expiry_ms = --*seen.last_expiry_ms; }) ==
             "the key expires 2.999 s after the call; it must live until 3 s after it");
}

BOOST_AUTO_TEST_CASE(an_explanation_tells_the_tokens_before_each_call) {
  const Verdict verdict = judge(suites::honest_history(calls({call(2), call(1, second / 2)})), ours, true);
  BOOST_TEST_REQUIRE(verdict.expected.size() == 2);
  BOOST_TEST(verdict.expected[0].tokens == "2");
  BOOST_TEST(verdict.expected[1].tokens == "1/2");
}

BOOST_AUTO_TEST_CASE(coverage_counts_what_happened) {
  const Verdict verdict =
      judge(suites::honest_history(calls({call(2), call(1), call(1, second - 1), call(1, 1), call(0), call(3), call(-1),
                                          call(1, -second), call(1, 60 * second)})),
            ours);
  BOOST_TEST(names_of(verdict).empty());
  const Coverage& seen = verdict.coverage;
  BOOST_TEST(seen.calls == 9);
  BOOST_TEST(seen.allowed == 3);
  BOOST_TEST(seen.denied == 3);
  BOOST_TEST(seen.never == 1);
  BOOST_TEST(seen.peeks == 1);
  BOOST_TEST(seen.bad_input == 1);
  BOOST_TEST(seen.clock_back == 1);
  BOOST_TEST(seen.expired == 1);
  BOOST_TEST(seen.emptied == 2);
  BOOST_TEST(seen.at_boundary == 1);
  BOOST_TEST(seen.before_boundary == 1);
}

BOOST_AUTO_TEST_CASE(bad_input_has_a_name_for_what_is_wrong_with_it) {
  const auto kind = [](const Plan& plan, const Quantity& cost) {
    return bad_input_kind(plan, {.advance_us = 0, .tenant = 0, .plan = 0, .cost = cost});
  };
  const auto text = [](const char* words) { return Quantity{std::string{words}}; };
  BOOST_TEST(kind(two_a_second_apart, 1) == "");
  BOOST_TEST(kind(two_a_second_apart, -1) == "negative_cost");
  BOOST_TEST(kind(two_a_second_apart, text("nan")) == "nan_cost");
  BOOST_TEST(kind(two_a_second_apart, text("1.5")) == "fractional_cost");
  BOOST_TEST(kind(two_a_second_apart, text("")) == "empty_cost");
  BOOST_TEST(kind(two_a_second_apart, text("abc")) == "text_cost");
  BOOST_TEST(kind(two_a_second_apart, text("1e300")) == "huge_cost");
  BOOST_TEST(kind({0, 1, second}, 1) == "zero_capacity");
  BOOST_TEST(kind({1, -1, second}, 1) == "negative_refill");
  BOOST_TEST(kind({1, 1, 0}, 1) == "zero_period");
  BOOST_TEST(kind({max_quantity, 1, second}, 1) == "unfit_limit");
}

Scenario any_scenario(std::int64_t least_cost) {
  const auto quantity = [](std::int64_t most) { return *rc::gen::inRange<std::int64_t>(1, most + 1); };
  Scenario scenario{.start = start, .plans = {}, .calls = {}};
  for (int plan = 0; plan < 2; ++plan)
    scenario.plans.push_back({quantity(5), quantity(5), *rc::gen::element<std::int64_t>(1'000, 60'000, second)});
  for (int left = *rc::gen::inRange(1, 30); left > 0; --left)
    scenario.calls.push_back(
        {.advance_us = *rc::gen::element<std::int64_t>(0, 0, 1, 999, 1'000, 12'000, second, -1, -second),
         .tenant = *rc::gen::inRange(0, 2),
         .plan = *rc::gen::inRange(0, 2),
         .cost = *rc::gen::inRange<std::int64_t>(least_cost, 7)});
  return scenario;
}

RC_BOOST_PROP(an_honest_limiter_is_blamed_for_nothing, ()) {
  RC_ASSERT(judge(suites::honest_history(any_scenario(-1)), ours).failures.empty());
}

RC_BOOST_PROP(a_false_answer_is_never_overlooked, ()) {
  History history = suites::honest_history(any_scenario(0));
  const auto index = *rc::gen::inRange<std::size_t>(0, history.seen.size());
  Observation& seen = history.seen[index];
  seen.allowed = !seen.allowed;
  const Verdict verdict = judge(history, ours);
  RC_ASSERT(!verdict.failures.empty());
  RC_ASSERT(verdict.failures.front().call == index);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::model
