#include <boost/test/unit_test.hpp>
#include <thread>

#include "proptests/harness/error.h"
#include "proptests/harness/server.h"

namespace weir::harness {
namespace {

using namespace std::chrono_literals;

constexpr Instant t0 = initial_instant;

std::int64_t us_of(const Reply& time) {
  return std::stoll(time.elements.at(0).text) * 1'000'000 + std::stoll(time.elements.at(1).text);
}

std::int64_t us_of(Instant instant) {
  return instant.time_since_epoch().count();
}

std::int64_t ms_of(Instant instant) {
  return us_of(instant) / 1000;
}

struct Fixture {
  Server server;
  Connection connection = server.connect();

  Reply run(const Command& command) { return connection.run(command); }
  Look look(const std::vector<std::string>& keys) { return parse_look(run(look_command(keys))); }
};

BOOST_FIXTURE_TEST_SUITE(clock_suite, Fixture)

BOOST_AUTO_TEST_CASE(time_is_what_it_was_set_to_forwards_and_backwards_to_the_microsecond) {
  BOOST_TEST(us_of(run({"TIME"})) == us_of(t0));
  const Instant year_2100{std::chrono::seconds{4'102'444'800}};
  for (const Instant now : {t0 + 1us, t0 + 2us, t0, t0 - 1us, t0 + 24h, year_2100, year_2100 - 1us, Instant{1us}, t0}) {
    server.set_clock(now);
    BOOST_TEST(us_of(run({"TIME"})) == us_of(now));
    BOOST_TEST(us_of(run({"TIME"})) == us_of(now));
    BOOST_TEST(us_of(server.clock()) == us_of(now));
  }
}

BOOST_AUTO_TEST_CASE(time_steps_go_down_the_pipeline_with_everything_else) {
  std::vector<Command> commands;
  for (int step = 0; step < 100; ++step) {
    commands.push_back(clock_command(t0 + step % 7 * 1us));
    commands.push_back({"TIME"});
  }
  const std::vector<Reply> replies = connection.pipeline(commands);
  for (std::size_t step = 0; step < 100; ++step) {
    BOOST_TEST(us_of(replies.at(2 * step + 1)) == us_of(t0) + static_cast<std::int64_t>(step % 7));
  }
}

BOOST_AUTO_TEST_CASE(a_key_is_alive_at_exactly_its_expiry_and_gone_a_millisecond_later) {
  run({"SET", "key", "value", "PX", "1000"});
  server.set_clock(t0 + 1s);
  BOOST_TEST(run({"GET", "key"}).text == "value");
  BOOST_TEST(run({"PTTL", "key"}).integer == 0);
  server.set_clock(t0 + 1s + 999us);
  BOOST_TEST(run({"GET", "key"}).text == "value");
  server.set_clock(t0 + 1s + 1ms);
  BOOST_TEST(show(run({"GET", "key"})) == "nil");
}

BOOST_AUTO_TEST_CASE(lifetimes_follow_the_clock_both_ways) {
  run({"SET", "key", "value", "PX", "1000"});
  for (const auto& [at, left_ms] : {std::pair{250ms, 750}, {999ms, 1}, {-1000ms, 2000}, {0ms, 1000}}) {
    server.set_clock(t0 + at);
    BOOST_TEST(run({"PTTL", "key"}).integer == left_ms);
  }
}

BOOST_AUTO_TEST_CASE(a_key_past_its_expiry_stays_until_it_is_touched) {
  run({"SET", "key", "value", "PX", "1000"});
  server.set_clock(t0 + 1h);
  // Some rounds of the server's own timer, which would have collected it.
  std::this_thread::sleep_for(300ms);
  BOOST_TEST(run({"DBSIZE"}).integer == 1);
  server.set_clock(t0);
  BOOST_TEST(run({"GET", "key"}).text == "value");
}

BOOST_AUTO_TEST_CASE(time_creeps_inside_one_script_as_redis_7_0_lets_it) {
  const Command twice{"EVAL",
                      "local a, b = redis.call('TIME'), redis.call('TIME')"
                      "return (b[1] - a[1]) * 1000000 + b[2] - a[2]",
                      "0"};
  BOOST_TEST(run(twice).integer == 0);
  server.set_creep(1000us);
  // TIME reads the clock three times on 7.0; later versions read it once, as the script begins.
  BOOST_TEST(run(twice).integer == (server.version().starts_with("7.0.") ? 3000 : 0));
  server.set_creep(0us);
  BOOST_TEST(run(twice).integer == 0);
  BOOST_TEST(us_of(server.clock()) > us_of(t0));
}

BOOST_AUTO_TEST_CASE(clock_takes_only_microseconds_since_1970) {
  for (const char* wrong : {"-1", "1.5", "now", "", "9223372036854775808"}) {
    BOOST_TEST(run({"WEIR.CLOCK", wrong}).is_error());
    BOOST_TEST(us_of(server.clock()) == us_of(t0));
  }
}

BOOST_AUTO_TEST_CASE(a_limiter_cannot_reach_the_clock_or_the_look) {
  BOOST_TEST(run({"EVAL", "return redis.call('WEIR.CLOCK', '1')", "0"}).is_error());
  BOOST_TEST(run({"EVAL", "return redis.call('WEIR.LOOK', 'key')", "0"}).is_error());
  BOOST_TEST(us_of(server.clock()) == us_of(t0));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(look_suite, Fixture)

BOOST_AUTO_TEST_CASE(it_tells_bytes_and_expiry_of_each_key) {
  run({"SET", "plain", "value"});
  run({"SET", "number", "12345"});
  run({"SET", "short-lived", std::string("\0\xff", 2), "PX", "1000"});
  run({"HSET", "hash", "field", "1"});
  run({"PEXPIREAT", "hash", "1700000005000"});
  const std::string dump = run({"DUMP", "hash"}).text;
  const Look look = this->look({"plain", "number", "short-lived", "hash", "absent"});
  BOOST_CHECK(
      (look.keys ==
       std::vector<KeyState>{
           {"value", {}}, {"12345", {}}, {std::string("\0\xff", 2), ms_of(t0) + 1000}, {dump, 1'700'000'005'000}, {}}));
}

BOOST_AUTO_TEST_CASE(each_write_is_counted_once_until_it_has_been_told) {
  const std::pair<Command, int> writes[] = {
      {{"SET", "key", "1"}, 1},
      {{"SET", "key", "1", "PX", "1000"}, 2},
      {{"INCR", "key"}, 1},
      {{"SETRANGE", "key", "0", "9"}, 1},
      {{"PEXPIRE", "key", "5000"}, 1},
      {{"PERSIST", "key"}, 1},
      {{"EXPIRE", "key", "0"}, 1},
      {{"HSET", "key", "field", "1"}, 1},
      {{"DEL", "key"}, 1},
      {{"ZADD", "key", "1", "member"}, 1},
      {{"UNLINK", "key"}, 1},
      {{"RPUSH", "key", "element"}, 1},
      {{"DEL", "key"}, 1},
      {{"SADD", "key", "member"}, 1},
      {{"DEL", "key"}, 1},
      {{"XADD", "key", "*", "field", "1"}, 1},
  };
  for (const auto& [command, count] : writes) {
    BOOST_TEST_CONTEXT(show(command)) {
      BOOST_TEST(!run(command).is_error());
      const Look look = this->look({"key"});
      BOOST_TEST(look.writes == count);
      BOOST_TEST(look.strays == 0);
      BOOST_TEST(this->look({"key"}).writes == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_denial_that_writes_nothing_counts_nothing) {
  run({"SET", "key", "10"});
  look({"key"});
  run({"EVAL", "if tonumber(redis.call('GET', KEYS[1])) >= 10 then return {0, 1000} end redis.call('INCR', KEYS[1])",
       "1", "key"});
  BOOST_TEST(look({"key"}).writes == 0);
  // And this is what one that does write looks like.
  run({"EVAL", "redis.call('PEXPIRE', KEYS[1], 1000) return {0, 1000}", "1", "key"});
  BOOST_TEST(look({"key"}).writes == 1);
}

BOOST_AUTO_TEST_CASE(reads_misses_failed_writes_and_lazy_expiry_are_no_writes) {
  run({"SET", "key", "value", "PX", "1000"});
  look({"key"});
  server.set_clock(t0 + 1h);
  for (const Command& command : std::vector<Command>{{"GET", "key"},
                                                     {"GET", "absent"},
                                                     {"DEL", "absent"},
                                                     {"SET", "absent", "1", "XX"},
                                                     {"INCR"},
                                                     {"EVAL", "return redis.call('TIME')", "0"}}) {
    run(command);
  }
  const Look look = this->look({"key"});
  BOOST_TEST(look.writes == 0);
  BOOST_CHECK(look.keys.at(0) == KeyState{});
}

BOOST_AUTO_TEST_CASE(a_write_to_a_key_that_is_not_named_is_a_stray) {
  run({"MSET", "one", "1", "two", "2", "three", "3"});
  const Look look = this->look({"one", "three"});
  BOOST_TEST(look.writes == 3);
  BOOST_TEST(look.strays == 1);
}

BOOST_AUTO_TEST_CASE(no_write_is_lost_however_many_there_are) {
  run({"EVAL", "for i = 1, 10000 do redis.call('SET', 'key' .. i, i) end", "0"});
  const Look look = this->look({"key1", "key10000"});
  BOOST_TEST(look.writes == 10'000);
  BOOST_TEST(look.strays == 9'998);
}

BOOST_AUTO_TEST_CASE(looking_changes_nothing) {
  run({"SET", "short", "text"});
  run({"SET", "number", "12345"});
  const std::string digest = run({"DEBUG", "DIGEST"}).text;
  for (int i = 0; i < 3; ++i) BOOST_TEST(look({"short", "number"}).writes == (i == 0 ? 2 : 0));
  BOOST_TEST(run({"OBJECT", "ENCODING", "short"}).text == "embstr");
  BOOST_TEST(run({"OBJECT", "ENCODING", "number"}).text == "int");
  BOOST_TEST(run({"DEBUG", "DIGEST"}).text == digest);
}

BOOST_AUTO_TEST_CASE(an_answer_that_is_none_of_the_looks_is_an_environment_error) {
  BOOST_CHECK_EXCEPTION(parse_look(run({"WEIR.LOOK"})), EnvironmentError, [](const EnvironmentError& error) {
    return std::string{error.what()}.starts_with("WEIR.LOOK");
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::harness
