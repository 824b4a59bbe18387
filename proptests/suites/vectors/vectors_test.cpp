#include "proptests/vectors/vectors.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <stdexcept>
#include <string>

#include "proptests/suites/vectors/vectors_file.h"
#include "weir/atomic_bucket.h"
#include "weir/bucket.h"
#include "weir/weir.h"

namespace weir {
namespace {

using vectors::Vector;

Instant now_of(const vectors::Step& step) {
  return Instant{Micros{step.now_us}};
}
Cost cost_of(const vectors::Step& step) {
  return Cost::make(step.cost).value();
}

/// Calls `check(step)` for each step in order, after `begin()` for each vector.
template <class Begin, class Check>
void for_each_step(const std::vector<Vector>& all, Begin begin, Check check) {
  for (const Vector& vector : all) {
    begin(vector);
    for (std::size_t i = 0; i < vector.steps.size(); ++i) {
      BOOST_TEST_CONTEXT('"' << vector.name << "\", step " << i + 1) check(vector.steps[i]);
    }
  }
}

BOOST_AUTO_TEST_SUITE(vectors_suite)

BOOST_AUTO_TEST_CASE(the_file_is_what_the_model_writes) {
  const auto fault = vectors::fault_in(suites::vectors_text());
  BOOST_TEST(!fault, fault.value_or(""));
}

BOOST_AUTO_TEST_CASE(core_decides_them_as_they_say) {
  std::optional<Bucket> stored;
  for_each_step(
      suites::vectors_in_file(), [&](const Vector&) { stored.reset(); },
      [&](const vectors::Step& step) {
        const Step decided = decide(step.limit.limit(), stored, now_of(step), cost_of(step));
        if (decided.write) stored = decided.write;
        BOOST_TEST((decided.decision == step.decision));
        BOOST_TEST(decided.write.has_value() == step.writes);
        BOOST_TEST((stored == step.state));
        if (step.writes) {
          const Instant alive_until = now_of(step) + lifetime(step.limit.limit(), stored->debt);
          BOOST_TEST(std::min(alive_until, max_instant).time_since_epoch().count() == step.alive_until_us);
        }
      });
}

BOOST_AUTO_TEST_CASE(the_c_abi_decides_them_as_they_say) {
  const weir_bucket none{sizeof none, 0, 0, 0, 0};
  weir_bucket bucket = none;
  for_each_step(
      suites::vectors_in_file(), [&](const Vector&) { bucket = none; },
      [&](const vectors::Step& step) {
        const weir_limit limit{sizeof limit, step.limit.capacity, step.limit.refill, step.limit.period_us};
        weir_decision decision{};
        decision.size = sizeof decision;
        std::int32_t writes = -1;
        BOOST_TEST(weir_decide(&limit, &bucket, step.now_us, step.cost, &decision, &writes) == WEIR_OK,
                   weir_last_error());
        BOOST_TEST(decision.outcome == static_cast<int>(step.decision.outcome));
        BOOST_TEST(decision.remaining == step.decision.remaining);
        BOOST_TEST(decision.retry_after_us == step.decision.retry_after.value_or(Micros{-1}).count());
        BOOST_TEST(decision.reset_after_us == step.decision.reset_after.count());
        BOOST_TEST(writes == (step.writes ? 1 : 0));
        BOOST_TEST((bucket.period_us != 0) == step.state.has_value());
        if (step.state) {
          BOOST_TEST(bucket.debt == step.state->debt);
          BOOST_TEST(bucket.as_of_us == step.state->as_of.time_since_epoch().count());
          BOOST_TEST(bucket.refill == step.state->refill);
          BOOST_TEST(bucket.period_us == step.state->period_us);
        }
      });
}

/// What a bucket in one process is for: one limit, and a clock that does not run back.
std::vector<Vector> for_one_process() {
  std::vector<Vector> fitting;
  for (const Vector& vector : suites::vectors_in_file()) {
    const auto& steps = vector.steps;
    const Limit limit = steps.front().limit.limit();
    const auto other_limit = [&](const vectors::Step& step) { return !(step.limit.limit() == limit); };
    const auto earlier = [](const vectors::Step& left, const vectors::Step& right) {
      return left.now_us < right.now_us;
    };
    if (std::is_sorted(steps.begin(), steps.end(), earlier) && std::none_of(steps.begin(), steps.end(), other_limit)) {
      fitting.push_back(vector);
    }
  }
  return fitting;
}

BOOST_AUTO_TEST_CASE(a_bucket_in_process_decides_them_as_they_say) {
  const auto fitting = for_one_process();
  BOOST_TEST(fitting.size() >= 10);
  std::optional<WideAtomicBucket> bucket;
  for_each_step(
      fitting,
      [&](const Vector& vector) { bucket.emplace(vector.steps.front().limit.limit(), now_of(vector.steps.front())); },
      [&](const vectors::Step& step) {
        const Answer answer = bucket->acquire(now_of(step), cost_of(step));
        BOOST_TEST((answer.decision(bucket->limit()) == step.decision));
        if (step.writes) BOOST_TEST((bucket->state(now_of(step)) == step.state));
      });
}

BOOST_AUTO_TEST_CASE(the_file_meets_what_it_is_to_meet) {
  std::size_t outcomes[3] = {};
  std::size_t written_denials = 0;
  std::size_t backs = 0;
  std::size_t changes = 0;
  const vectors::Step* before = nullptr;
  for_each_step(
      suites::vectors_in_file(), [&](const Vector&) { before = nullptr; },
      [&](const vectors::Step& step) {
        ++outcomes[static_cast<std::size_t>(step.decision.outcome)];
        written_denials += step.decision.outcome == Outcome::denied && step.writes;
        backs += before != nullptr && step.now_us < before->now_us;
        changes += before != nullptr && !(step.limit.limit() == before->limit.limit());
        before = &step;
      });
  for (const std::size_t count : {outcomes[0], outcomes[1], outcomes[2], written_denials, backs, changes}) {
    BOOST_TEST(count >= 30U);
  }
}

/// `text` with `from` replaced, once.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto where = text.find(from);
  BOOST_REQUIRE(where != std::string::npos);
  return text.replace(where, from.size(), to);
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_as_written_is_refused_with_what_is_wrong) {
  const std::string text = suites::vectors_text();
  const auto fault = [](const std::string& file) { return vectors::fault_in(file).value_or("none"); };
  BOOST_TEST(fault(with(text, "\"remaining\":2", "\"remaining\":1")).find("checksum is") == 0U);
  BOOST_TEST(fault(with(text, "\"version\": 1", "\"version\": 2")).find("version is 2; this program reads") == 0U);
  BOOST_TEST(fault("{}").find("no file of vectors") == 0U);
  BOOST_TEST(fault(text.substr(0, text.size() / 2)).find("no file of vectors") == 0U);

  auto wrong = suites::vectors_in_file();
  wrong.at(0).steps.at(1).decision.remaining = 7;
  BOOST_TEST(fault(vectors::write(wrong)) ==
             "vector \"an absent bucket is full\", step 2: remaining is 7; the model says 1");
  auto fewer = suites::vectors_in_file();
  fewer.pop_back();
  BOOST_TEST(fault(vectors::write(fewer)).find("every answer is right, but") == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
