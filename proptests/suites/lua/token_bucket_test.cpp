#include <rapidcheck/boost_test.h>
#include <boost/test/unit_test.hpp>

#include "model/bucket.h"
#include "model/promises.h"
#include "proptests/suites/lua/redis.h"
#include "proptests/suites/support/limiters.h"
#include "proptests/suites/support/show.h"
#include "proptests/suites/support/walk.h"
#include "weir/stored_bucket.h"

namespace weir {
namespace {

using harness::Command;
using harness::KeyState;
using harness::Look;
using harness::Reply;
using suites::Redis;

using suites::NoShrinking;
BOOST_TEST_GLOBAL_FIXTURE(NoShrinking);

constexpr suites::Terrain terrain{.refill_most = std::int64_t{1} << 40};  // what a script takes
const std::string key = "rl:{tenant}";

Redis& redis() {
  static Redis one;
  return one;
}

std::string text(std::int64_t number) {
  return std::to_string(number);
}

Command take(const model::Input& input, std::int64_t multiple = 1) {
  return redis().take(key, {text(input.limit.capacity()), text(input.limit.refill() * multiple),
                            text(input.cost.tokens()), text(input.limit.period().count() * multiple)});
}

std::int64_t in_ms(Micros time) {
  return time.count() / 1000 + (time.count() % 1000 == 0 ? 0 : 1);
}
std::int64_t ms_of(Instant instant) {
  return instant.time_since_epoch().count() / 1000;
}

Reply integer(std::int64_t value) {
  return {Reply::Kind::integer, value, {}, {}};
}

Reply as_reply(const Decision& decision) {
  const std::int64_t retry_ms = decision.retry_after ? in_ms(*decision.retry_after) : -1;
  return {Reply::Kind::array,
          0,
          {},
          {integer(decision.allowed() ? 1 : 0), integer(retry_ms), integer(decision.remaining),
           integer(in_ms(decision.reset_after))}};
}

/// What the walks below have met, in calls.
struct Met {
  int allowed = 0, denied = 0, never = 0, expired = 0, back = 0, plan_changed = 0, written_denials = 0, kept_expiry = 0;
} met;

/// Replies and looks of one walk against the model and core, from an empty server.
void judge(const std::vector<model::Input>& inputs, const std::vector<Reply>& replies) {
  std::optional<model::State> state;
  KeyState before;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const model::Input& input = inputs[k];
    const Reply& reply = replies[3 * k + 1];
    const Look look = harness::parse_look(replies[3 * k + 2]);
    const KeyState& after = look.keys.at(0);
    if (before.bytes && ms_of(input.now) > *before.expiry_ms) {
      state.reset();
      before = {};
      ++met.expired;
    }
    const auto stored = before.bytes ? std::optional{decode(*before.bytes).value().bucket} : std::nullopt;
    const model::Output right = model::step(state, input);
    const Step step = decide(input.limit, stored, input.now, input.cost);
    RC_LOG() << input << "\n    right " << right.decision << (right.writes ? ", written" : "") << "\n    reply "
             << harness::show(reply) << ", " << look.writes << " writes" << std::endl;

    RC_ASSERT(reply == as_reply(right.decision));
    RC_ASSERT(step.decision == right.decision);
    RC_ASSERT(look.strays == 0);
    RC_ASSERT((look.writes > 0) == right.writes);
    if (right.writes) {
      const StoredBucket written = decode(after.bytes.value()).value();
      RC_ASSERT(written.bucket == suites::in_units(*right.after));
      RC_ASSERT(written.bucket == step.write);
      RC_ASSERT(std::string_view(*after.bytes) == std::string_view(encode(written).data(), stored_bucket_size));
      RC_ASSERT(after.expiry_ms == written.until_ms);
      RC_ASSERT(ms_of(right.alive_until) <= written.until_ms);
      RC_ASSERT(Instant{std::chrono::milliseconds{written.until_ms}} <= right.gone_after);
    } else {
      RC_ASSERT(after == before);
    }

    met.allowed += right.decision.allowed();
    met.denied += right.decision.outcome == Outcome::denied;
    met.never += right.decision.outcome == Outcome::never;
    met.back += stored && input.now < stored->as_of;
    met.plan_changed += stored && !written_under(*stored, input.limit);
    met.written_denials += right.writes && !right.decision.allowed();
    met.kept_expiry += right.writes && before.expiry_ms == after.expiry_ms;
    before = after;
    state = right.after;
  }
}

BOOST_AUTO_TEST_SUITE(token_bucket_script_suite)

void run_and_judge(const std::vector<model::Input>& inputs) {
  std::vector<Command> commands;
  for (const model::Input& input : inputs) {
    commands.push_back(harness::clock_command(input.now));
    // Multiples of a reduced limit are the same limit.
    const std::int64_t multiple = *rc::gen::element<std::int64_t>(1, 1, 2, 7, 1000);
    const bool within = input.limit.refill() <= terrain.refill_most / multiple &&
                        input.limit.period().count() <= max_quantity / multiple;
    commands.push_back(take(input, within ? multiple : 1));
    commands.push_back(harness::look_command({key}));
  }
  redis().clear();
  judge(inputs, redis().connection.pipeline(commands));
}

RC_BOOST_PROP(the_script_answers_and_stores_what_the_model_and_core_do_bit_for_bit, ()) {
  suites::Walk walk{terrain};
  std::vector<model::Input> inputs;
  std::optional<model::State> state;  // as if nothing expired: enough to step to where it matters
  for (int left = *rc::gen::inRange(1, 200); left > 0; --left) {
    inputs.push_back(walk.next(state));
    state = model::step(state, inputs.back()).after;
  }
  run_and_judge(inputs);
}

RC_BOOST_PROP(a_change_of_plan_is_exact_however_far_the_clock_was_thrown_back, ()) {
  // What is owed under the old plan is then past 2^53 in its units, and yet below two capacities of the new one:
  // where a product that is formed before it is known to fit would change the answer.
  for (int pair = 0; pair < 10; ++pair) {
    const Limit old = suites::any_limit(terrain.refill_most);
    const auto unit = *rc::gen::element<std::int64_t>(1, 2, 3, 7, 1000, 1'000'003);
    const Limit large = Limit::make(max_quantity / unit, 1, Micros{unit}).value();
    const model::Rational until_cut = 2 * model::Rational{large.capacity()} * old.units_per_token() / old.refill();
    const model::Rational back_us = until_cut * model::Rational{*rc::gen::inRange(1, 1'000'003), 1'000'003};
    if (back_us >= (terrain.latest - terrain.earliest).count()) continue;
    run_and_judge({{old, terrain.latest, one_token},  //
                   {large, terrain.latest - Micros{model::floor(back_us)}, one_token}});
  }
}

BOOST_AUTO_TEST_CASE(the_walks_met_what_they_were_to_meet) {
  for (const int count : {met.allowed, met.denied, met.never, met.expired, met.back, met.plan_changed,
                          met.written_denials, met.kept_expiry}) {
    BOOST_TEST(count > 10);
  }
}

// The promises of DESIGN 2, on the script itself: its state is put back, the clock set, the call made.

model::Answer<KeyState> by_the_script(const std::optional<KeyState>& stored, const model::Input& input) {
  std::vector<Command> commands{{"FLUSHALL"}};
  if (stored && ms_of(input.now) <= *stored->expiry_ms) {
    commands.push_back(harness::clock_command(Instant{}));  // or an expiry that is due could not be set
    commands.push_back({"SET", key, *stored->bytes, "PXAT", text(*stored->expiry_ms)});
  }
  commands.push_back(harness::clock_command(input.now));
  commands.push_back(harness::look_command({key}));
  commands.push_back(take(input));
  commands.push_back(harness::look_command({key}));
  const auto replies = redis().connection.pipeline(commands);

  const auto& reply = replies[replies.size() - 2].elements;
  const Look look = harness::parse_look(replies.back());
  Decision decision{.outcome = reply.at(0).integer == 1    ? Outcome::allowed
                               : reply.at(1).integer == -1 ? Outcome::never
                                                           : Outcome::denied,
                    .remaining = reply.at(2).integer,
                    .retry_after = Micros{1000 * reply.at(1).integer},
                    .reset_after = Micros{1000 * reply.at(3).integer}};
  if (decision.outcome == Outcome::never) decision.retry_after = std::nullopt;
  const KeyState& after = look.keys.at(0);
  return {decision, after.bytes ? std::optional{after} : std::nullopt, look.writes > 0};
}

const model::Promises<KeyState> script_promises{by_the_script, Micros{1000}};

/// Somewhere on a walk of the script.
struct Place {
  std::optional<KeyState> stored;
  model::Input input;
};

Place anywhere(suites::Terrain where = terrain) {
  suites::Walk walk{where};
  std::optional<model::State> state;
  Place place{{}, walk.next(state)};
  for (int left = *rc::gen::inRange(0, 12); left > 0; --left) {
    place.stored = by_the_script(place.stored, place.input).after;
    state = model::step(place.stored ? state : std::nullopt, place.input).after;
    place.input = walk.next(state);
  }
  if (place.stored && ms_of(place.input.now) > *place.stored->expiry_ms) place.stored.reset();
  RC_LOG() << (place.stored ? "stored" : "absent") << ", then " << place.input << std::endl;
  return place;
}

bool unmoved(const Place& place) {
  if (!place.stored) return true;
  const Bucket bucket = decode(*place.stored->bytes).value().bucket;
  return written_under(bucket, place.input.limit) && bucket.as_of <= place.input.now;
}

RC_BOOST_PROP(a_wait_that_is_told_is_enough_and_one_millisecond_less_is_not, ()) {
  const Place place = anywhere();
  RC_PRE(unmoved(place) || !place.input.cost.is_peek());
  RC_ASSERT(script_promises.a_wait_that_is_told_is_enough_and_not_too_long(place.stored, place.input));
}

RC_BOOST_PROP(a_batch_is_its_sequence, ()) {
  Place place = anywhere();
  const auto part = *rc::gen::inRange<std::int64_t>(0, place.input.cost.tokens() + 1);
  const Cost more = Cost::make(place.input.cost.tokens() - part).value();
  place.input.cost = Cost::make(part).value();
  // The expiry may be moved by the first call already, so decisions are compared, and what is stored but for it.
  const auto first = by_the_script(place.stored, place.input);
  const auto second = by_the_script(first.after, {place.input.limit, place.input.now, more});
  const auto whole = Cost::make(part + more.tokens()).value();
  const auto at_once = by_the_script(place.stored, {place.input.limit, place.input.now, whole});
  RC_ASSERT((first.decision.allowed() && second.decision.allowed()) == at_once.decision.allowed());
  if (!at_once.decision.allowed() || !at_once.after) return;
  RC_ASSERT(second.decision == at_once.decision);
  RC_ASSERT(decode(*second.after->bytes)->bucket == decode(*at_once.after->bytes)->bucket);
}

RC_BOOST_PROP(only_a_grant_leaves_a_trace, ()) {
  const Place place = anywhere();
  RC_ASSERT(script_promises.only_a_grant_leaves_a_trace(place.stored, place.input, !unmoved(place), false));
}

RC_BOOST_PROP(a_greater_capacity_refuses_nobody, ()) {
  auto where = terrain;
  where.plan_changes = false;
  const Place place = anywhere(where);
  const auto raised =
      Limit::make(2 * place.input.limit.capacity(), place.input.limit.refill(), place.input.limit.period());
  RC_PRE(raised.has_value());
  RC_ASSERT(script_promises.a_raise_refuses_nobody(place.stored, place.input, *raised));
}

BOOST_AUTO_TEST_CASE(tenants_share_nothing) {
  redis().clear();
  const auto run = [](const std::string& whose) {
    return redis().connection.run(redis().take(whose, {"2", "1", "1"}));
  };
  BOOST_TEST(run("rl:{a}").elements.at(2).integer == 1);
  BOOST_TEST(run("rl:{a}").elements.at(2).integer == 0);
  BOOST_TEST(run("rl:{b}").elements.at(2).integer == 1);
  BOOST_TEST(run("rl:{a}").elements.at(0).integer == 0);
}

// Bad input of every kind: an error that names the argument, and nothing written.

void expect_refusal(const Command& command, const std::string& named) {
  const Reply reply = redis().connection.run(command);
  BOOST_TEST_CONTEXT(harness::show(command) << " -> " << harness::show(reply)) {
    BOOST_TEST(reply.is_error());
    BOOST_TEST(reply.text.find(named) != std::string::npos);
    BOOST_TEST(redis().look(key).writes == 0);
  }
}

BOOST_AUTO_TEST_CASE(bad_input_of_every_kind_is_an_error_that_names_the_argument_and_writes_nothing) {
  const std::vector<std::string> bad{
      "-1",  "1.5", "0.5", "nan",  "-nan", "inf", "-inf", "1e300",           "1e-5", "abc", "",
      "10x", "1 2", "--1", "true", "nil",  "0x",  "\n",   "9007199254740992"};
  for (const bool stored : {false, true}) {
    redis().clear();
    if (stored) redis().connection.run(redis().take(key, {"10", "1", "1"}));
    const KeyState before = redis().look(key).keys.at(0);
    for (const auto& value : bad) {
      expect_refusal(redis().take(key, {value, "1", "1", "1000000"}), "capacity");
      expect_refusal(redis().take(key, {"10", value, "1", "1000000"}), "refill");
      expect_refusal(redis().take(key, {"10", "1", value, "1000000"}), "cost");
      expect_refusal(redis().take(key, {"10", "1", "1", value}), "period");
    }
    expect_refusal(redis().take(key, {"0", "1", "1"}), "capacity");
    expect_refusal(redis().take(key, {"10", "0", "1"}), "refill");
    expect_refusal(redis().take(key, {"10", "1", "1", "0"}), "period");
    expect_refusal(redis().take(key, {"10", "1099511627777", "1"}), "refill");
    expect_refusal(redis().take(key, {}), "capacity");
    expect_refusal(redis().take(key, {"10"}), "refill");
    expect_refusal(redis().take(key, {"10", "1"}), "cost");
    expect_refusal(redis().take(key, {"10", "1", "1", "1000000", "1"}), "ARGV");
    expect_refusal({"EVALSHA", redis().sha, "0", "10", "1", "1"}, "KEYS");
    expect_refusal({"EVALSHA", redis().sha, "2", key, key, "10", "1", "1"}, "KEYS");
    BOOST_TEST((redis().look(key).keys.at(0) == before));
  }
}

BOOST_AUTO_TEST_CASE(what_lua_reads_as_a_whole_number_in_range_is_one) {
  redis().clear();
  for (const std::string thousand : {"1000", "1e3", "0x3e8", " 1000 ", "1000.0", "+1000"}) {
    BOOST_TEST(redis().connection.run(redis().take(key, {thousand, "1", "0"})).elements.at(2).integer == 1000);
  }
  BOOST_TEST(redis().connection.run(redis().take(key, {"10", "1099511627776", "0"})).elements.at(2).integer == 10);
}

BOOST_AUTO_TEST_CASE(a_limit_that_does_not_fit_is_refused_with_the_largest_capacity_that_does) {
  redis().clear();
  expect_refusal(redis().take(key, {"100003", "100003", "1", "86400000000"}),
                 "the largest capacity at this rate is 26062");
  const auto peek_at = [](const std::string& capacity) {
    return redis().connection.run(redis().take(key, {capacity, "100003", "0", "86400000000"}));
  };
  BOOST_TEST(peek_at("26062").elements.at(2).integer == 26062);
  BOOST_TEST(peek_at("26063").is_error());
}

BOOST_AUTO_TEST_CASE(a_key_that_holds_something_else_is_an_error_that_names_it_and_is_left_alone) {
  const std::vector<Command> foreign{{"SET", key, "hello"},
                                     {"SET", key, ""},
                                     {"SET", key, "42"},
                                     {"SET", key, std::string(40, 'x')},
                                     {"SET", key, std::string(40, '\0')},
                                     {"HSET", key, "tokens", "3"},
                                     {"RPUSH", key, "1"},
                                     {"SADD", key, "1"},
                                     {"ZADD", key, "1", "1"}};
  for (const auto& command : foreign) {
    redis().connection.run({"FLUSHALL"});
    redis().connection.run(command);
    const KeyState before = redis().look(key).keys.at(0);
    expect_refusal(redis().take(key, {"10", "1", "1"}), "BADKEY " + key);
    BOOST_TEST((redis().look(key).keys.at(0) == before));
  }
}

BOOST_AUTO_TEST_CASE(a_clock_that_runs_on_inside_the_script_only_lets_the_key_live_longer) {
  redis().clear();
  redis().server.set_creep(Micros{700});
  for (int call = 0; call < 50; ++call) {
    const Reply reply = redis().connection.run(redis().take(key, {"1000", "1000", "1"}));
    BOOST_TEST(reply.elements.at(0).integer == 1);
    const KeyState after = redis().look(key).keys.at(0);
    const StoredBucket stored = decode(after.bytes.value()).value();
    BOOST_TEST(stored.until_ms <= *after.expiry_ms);
    BOOST_TEST(*after.expiry_ms <= stored.until_ms + 50);
  }
  redis().server.set_creep(Micros{0});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
