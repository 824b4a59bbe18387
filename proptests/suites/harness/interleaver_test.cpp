#include "proptests/harness/interleaver.h"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "proptests/harness/error.h"
#include "proptests/suites/harness/lua_folder.h"

namespace weir::harness {
namespace {

const Instant noon{Micros{1'700'000'000'000'000}};

/// Reads, decides, and counts in a second round trip: two steps where there is room, one where there is none.
constexpr const char* get_then_incr =
    "local n = tonumber(redis.call('GET', call.key) or 0)\n"
    "if n >= call.limit.capacity then return { allowed = false } end\n"
    "redis.pipeline { {'MULTI'}, {'INCR', call.key}, {'EXPIRE', call.key, 2}, {'EXEC'} }\n"
    "return { allowed = true }";

constexpr const char* watch_loop =
    "while true do\n"
    "  redis.call('WATCH', call.key)\n"
    "  local n = tonumber(redis.call('GET', call.key) or 0)\n"
    "  if n >= call.limit.capacity then redis.call('UNWATCH') return { allowed = false } end\n"
    "  local r = redis.pipeline { {'MULTI'}, {'INCR', call.key}, {'EXEC'} }\n"
    "  if r[3] then return { allowed = true } end\n"
    "end";

Schedule parsed(std::string_view text) {
  return parse_schedule(text).value();
}

struct Fixture : LuaFolder {
  Server server;

  static std::vector<Client> clients_of(std::size_t count, std::size_t attempts, const Quantity& capacity) {
    Call call = call_of("k");
    call.capacity = capacity;
    return std::vector<Client>(count, Client{.calls = std::vector<Call>(attempts, call), .skew = Micros{0}});
  }
  static std::ptrdiff_t admitted(const History& history) {
    return std::count_if(history.steps.begin(), history.steps.end(), [](const Step& step) {
      return step.outcome && std::holds_alternative<Answer>(*step.outcome) && std::get<Answer>(*step.outcome).allowed;
    });
  }
};

BOOST_FIXTURE_TEST_SUITE(interleaver, Fixture)

BOOST_AUTO_TEST_CASE(a_schedule_runs_step_by_step_as_it_is_written) {
  auto host = program(get_then_incr);
  Interleaver interleaver{server, host};
  const auto clients = clients_of(2, 1, "1");
  const auto lines = [&](std::string_view schedule) {
    std::vector<std::string> shown;
    for (const Step& step : interleaver.run(clients, parsed(schedule), noon).steps) shown.push_back(show(step));
    return shown;
  };
  const std::string queued = "  MULTI | INCR k | EXPIRE k 2 | EXEC -> {OK, QUEUED, QUEUED, ";
  const std::vector<std::string> leaks{"A #1  GET k -> nil", "B #1  GET k -> nil",
                                       "A #1" + queued + "{1, 1}}  ADMITTED", "B #1" + queued + "{2, 1}}  ADMITTED"};
  BOOST_TEST(lines("A B A B") == leaks, boost::test_tools::per_element());
  const std::vector<std::string> holds{"A #1  GET k -> nil", "A #1" + queued + "{1, 1}}  ADMITTED",
                                       "B #1  GET k -> \"1\"  denied"};
  BOOST_TEST(lines("A A B B B A") == holds, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_same_schedule_is_the_same_history_each_time) {
  auto host = program(get_then_incr);
  Interleaver interleaver{server, host};
  const auto clients = clients_of(3, 2, "2");
  const std::array steps{4, 4, 4};
  const std::array ticks{Micros{1'000'000}, Micros{-1'000'000}};
  const Schedule schedule = uniform_schedule(steps, ticks, 7);
  const auto shown = [&] {
    std::string all;
    for (const Step& step : interleaver.run(clients, schedule, noon).steps) all += show(step) + "\n";
    return all;
  };
  const std::string once = shown();
  BOOST_TEST(shown() == once);
  BOOST_TEST(shown() == once);
}

BOOST_AUTO_TEST_CASE(the_incidents_client_leaks_with_two_clients_and_a_limit_of_one) {
  auto host = program(get_then_incr);
  Interleaver interleaver{server, host};
  const auto clients = clients_of(2, 1, "1");
  const std::array steps{2, 2};
  // Of the 6 interleavings of 2 and 2 steps, 4 have both reads before the first write.
  int leaked = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    leaked += admitted(interleaver.run(clients, uniform_schedule(steps, {}, seed), noon)) == 2;
  BOOST_TEST(leaked > 150);
  BOOST_TEST(leaked < 250);
}

BOOST_AUTO_TEST_CASE(a_watch_loop_holds_in_every_order_and_is_made_to_try_again) {
  auto host = program(watch_loop);
  Interleaver interleaver{server, host};
  const auto clients = clients_of(3, 2, "2");
  const std::array steps{12, 12, 12};
  int tried_again = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const History history = interleaver.run(clients, uniform_schedule(steps, {}, seed), noon);
    BOOST_TEST(admitted(history) <= 2);
    if (history.complete) BOOST_TEST(admitted(history) == 2);
    for (const Step& step : history.steps) {
      const auto& replies = step.reply.elements;
      tried_again += replies.size() == 3 && replies[2].kind == Reply::Kind::nil;
    }
  }
  BOOST_TEST(tried_again > 0);
}

BOOST_AUTO_TEST_CASE(a_run_that_stops_inside_a_transaction_leaves_nothing_to_the_next) {
  auto host = program(
      "redis.call('WATCH', call.key) redis.call('MULTI') redis.call('SET', call.key, 1)\n"
      "local r = redis.call('EXEC') return { allowed = r ~= nil }");
  Interleaver interleaver{server, host};
  const auto clients = clients_of(1, 1, "1");
  BOOST_TEST(!interleaver.run(clients, parsed("A"), noon).complete);
  BOOST_TEST(!interleaver.run(clients, parsed("A A A"), noon).complete);
  const History history = interleaver.run(clients, parsed("A A A A"), noon);
  BOOST_TEST(history.complete);
  BOOST_TEST(admitted(history) == 1);
}

BOOST_AUTO_TEST_CASE(the_clock_moves_in_its_slots_and_nowhere_else) {
  auto host = program(
      "local t = redis.call('TIME') local u = redis.call('TIME')\n"
      "return { allowed = true, remaining = call.now_us }");
  Interleaver interleaver{server, host};
  auto clients = clients_of(2, 1, "1");
  clients[1].skew = Micros{-250};
  const History history = interleaver.run(clients, parsed("A +5us B -2000000us A B"), noon);
  const auto time = [](std::int64_t s, std::int64_t us) {
    return array({text(std::to_string(s)), text(std::to_string(us))});
  };
  const std::vector<Reply> times{
      time(1'700'000'000, 0), Reply{}, time(1'700'000'000, 5), Reply{}, time(1'699'999'998, 5), time(1'699'999'998, 5)};
  BOOST_REQUIRE(history.steps.size() == times.size());
  for (std::size_t i = 0; i < times.size(); ++i) BOOST_TEST((history.steps[i].reply == times[i]), i);
  BOOST_TEST(show(history.steps[1]) == "clock +5us");
  BOOST_TEST((history.steps[5].clock == noon + Micros{-1'999'995}));
  // A client reads its own clock when its attempt begins.
  BOOST_TEST(*std::get<Answer>(*history.steps[4].outcome).remaining == 1'700'000'000'000'000);
  BOOST_TEST(*std::get<Answer>(*history.steps[5].outcome).remaining == 1'699'999'999'999'755);
}

BOOST_AUTO_TEST_CASE(an_attempt_that_never_asks_redis_takes_one_slot) {
  auto host = program("return { allowed = call.attempt == 1 }");
  Interleaver interleaver{server, host};
  const auto clients = clients_of(1, 2, "1");
  const History history = interleaver.run(clients, parsed("A A A"), noon);
  BOOST_REQUIRE(history.steps.size() == 2U);
  BOOST_TEST(show(history.steps[0]) == "A #1  ADMITTED");
  BOOST_TEST(show(history.steps[1]) == "A #2  denied");
}

BOOST_AUTO_TEST_CASE(a_refused_attempt_ends_and_the_next_one_begins) {
  auto host = program(
      "if call.attempt == 1 then redis.call('GET') end\nredis.call('INCR', call.key)\n"
      "redis.call('LPOP', call.key) return { allowed = true }");
  Interleaver interleaver{server, host};
  const auto clients = clients_of(1, 2, "1");
  const History history = interleaver.run(clients, parsed("A A A A A"), noon);
  BOOST_TEST(history.complete);
  BOOST_REQUIRE(history.steps.size() == 3U);
  const std::string wrong_type = "ERR wrong number of arguments for 'get' command";
  BOOST_TEST(without_directory(show(history.steps[0])) ==
             "A #1  GET -> (error) " + wrong_type + "  REFUSED c.lua:2: " + wrong_type);
  BOOST_TEST(show(history.steps[1]) == "A #2  INCR k -> 1");
  BOOST_TEST(std::holds_alternative<Refusal>(*history.steps[2].outcome));
}

BOOST_AUTO_TEST_CASE(a_script_that_the_server_does_not_know_takes_one_step_more) {
  write("s.lua", "return redis.call('INCR', KEYS[1])");
  auto host = script("return { call.key }", "return {}", "return { allowed = r <= 1 }");
  Interleaver interleaver{server, host};
  const auto clients = clients_of(2, 1, "1");
  BOOST_TEST((steps_of_each(interleaver.run_in_turn(clients, noon), 2) == std::vector{2, 1}));
  const History known = interleaver.run_in_turn(clients, noon);
  BOOST_TEST((steps_of_each(known, 2) == std::vector{1, 1}));
  BOOST_TEST(show(schedule_of(known)) == "A B");
  BOOST_TEST(admitted(known) == 1);
}

BOOST_AUTO_TEST_CASE(a_program_that_waits_for_the_clock_is_stopped_when_run_in_turn) {
  auto host = program("repeat until redis.call('TIME')[1] == '0' return { allowed = true }");
  Interleaver interleaver{server, host};
  const History history = interleaver.run_in_turn(clients_of(1, 1, "1"), noon, 50);
  BOOST_TEST(!history.complete);
  BOOST_TEST(history.steps.size() == 50U);
}

BOOST_AUTO_TEST_CASE(after_a_server_that_went_away_the_next_run_is_on_new_connections) {
  auto host = program(get_then_incr);
  Interleaver interleaver{server, host};
  const auto clients = clients_of(2, 1, "1");
  BOOST_TEST(interleaver.run_in_turn(clients, noon).complete);
  server.kill();
  BOOST_CHECK_THROW(interleaver.run_in_turn(clients, noon), NoReply);
  server.start_again();
  BOOST_TEST(interleaver.run_in_turn(clients, noon).complete);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::harness
