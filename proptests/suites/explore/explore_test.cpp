// The search on a real server: against the same search in memory, against ways that are run from an empty
// server, and against limiters of which it is known what is wrong with them.

#include "ci/gate/explore.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>

#include "proptests/harness/error.h"
#include "proptests/suites/explore/toy.h"
#include "proptests/suites/harness/scratch.h"

namespace weir::gate {
namespace {

using harness::explore::Act;
using harness::explore::Mark;

const std::filesystem::path contracts{WEIR_CONTRACTS};
const std::filesystem::path get_then_set{WEIR_GET_THEN_SET};

ExploreOptions scope(int clients, int attempts, int ticks, std::int64_t capacity, int faults = 0) {
  ExploreOptions options;
  options.clients = clients;
  options.attempts = attempts;
  options.ticks = ticks;
  options.faults = faults;
  options.capacity = capacity;
  options.keep_going = true;
  return options;
}

std::string way_of(const Explored& explored) {
  std::string way;
  for (const auto& step : explored.shortest) {
    const auto& [act, client, key, retries] = step.happening;
    way += way.empty() ? "" : " ";
    way += act == Act::tick ? "tick" : client < 0 ? name(act) : std::string(1, static_cast<char>('A' + client));
    if (client >= 0 && act != Act::step) way += std::string("[") + name(act) + (retries ? ", again]" : "]");
  }
  return way;
}

struct Fixture : harness::Scratch {
  Explored program(const std::string& take, const ExploreOptions& options) const {
    return explore(write("c.lua", "return { name = 'n', promises = 'token_bucket', take = function(redis, call) " +
                                      take + " end }"),
                   options);
  }
};

BOOST_FIXTURE_TEST_SUITE(explore_suite, Fixture)

BOOST_AUTO_TEST_CASE(the_server_has_the_states_of_the_same_search_in_memory) {
  using model::explore::Toy;
  for (const auto& [clients, attempts, ticks, capacity] :
       {std::tuple{2, 2, 2, 2}, {3, 2, 0, 3}, {3, 2, 2, 4}, {3, 2, 2, 6}, {4, 1, 1, 2}}) {
    for (const bool symmetric : {true, false}) {
      Toy toy{clients, attempts, ticks, capacity, symmetric};
      const auto in_memory = model::explore::Explorer<Toy>{toy}.run({.keep_going = true});
      auto options = scope(clients, attempts, ticks, capacity);
      options.symmetry = symmetric;
      const Explored real = explore(get_then_set, options);
      BOOST_TEST_CONTEXT(clients << " x " << attempts << " x " << ticks << ", capacity " << capacity
                                 << (symmetric ? "" : ", unreduced")) {
        BOOST_TEST(real.search.states == in_memory.states);
        BOOST_TEST(real.search.edges == in_memory.edges);
        BOOST_TEST(real.search.interleavings == in_memory.interleavings);
        BOOST_TEST(real.search.violations == in_memory.violations);
        BOOST_TEST(real.search.shortest.size() == in_memory.shortest.size());
        BOOST_TEST(real.symmetric == symmetric);
        BOOST_TEST(real.audit_agrees());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(get_then_set_fails_in_ten_steps_at_capacity_four_and_not_at_six) {
  const Explored four = explore(get_then_set, scope(3, 2, 2, 4));
  BOOST_TEST((four.outcome() == Explored::Outcome::fail));
  BOOST_TEST(way_of(four) == "A A A A B B B C C B");
  BOOST_TEST(explored_json(four, 0).find("over-admission") != std::string::npos);
  const Explored six = explore(get_then_set, scope(3, 2, 2, 6));
  BOOST_TEST((six.outcome() == Explored::Outcome::pass));
  BOOST_TEST(six.search.interleavings == 3'153'150);
  BOOST_TEST(six.audit.size() == 100U);
}

BOOST_AUTO_TEST_CASE(the_shipped_bucket_withstands_one_fault_of_every_kind_and_each_fires) {
  const Explored explored = explore(contracts / "token_bucket.lua", scope(3, 2, 3, 2, 1));
  BOOST_TEST_INFO(explored_text(explored));
  BOOST_TEST((explored.outcome() == Explored::Outcome::pass));
  for (int act = static_cast<int>(Act::lost_before); act < harness::explore::act_count; ++act)
    BOOST_TEST(explored.search.marked[static_cast<std::size_t>(act)] > 0U, name(static_cast<Act>(act)));
  BOOST_TEST(explored.search.marked[Mark::excused] > 0U);
  BOOST_TEST(explored.search.marked[Mark::denied] > 0U);
}

BOOST_AUTO_TEST_CASE(the_shipped_bucket_withstands_any_two_faults) {
  const Explored explored = explore(contracts / "token_bucket.lua", scope(2, 2, 2, 1, 2));
  BOOST_TEST((explored.outcome() == Explored::Outcome::pass));
  BOOST_TEST(explored.search.marked[Mark::excused] > 0U);
}

BOOST_AUTO_TEST_CASE(the_same_bucket_in_two_steps_fails_in_the_same_scope) {
  const Explored explored = program(
      "local n = tonumber(redis.call('GET', call.key) or call.limit.capacity)\n"
      "if n < 1 then return { allowed = false } end\n"
      "redis.call('SET', call.key, n - 1, 'PX', 9000)\n"
      "return { allowed = true }",
      scope(3, 2, 3, 2));
  BOOST_TEST((explored.outcome() == Explored::Outcome::fail));
  BOOST_TEST(way_of(explored) == "A A A B B A");
}

BOOST_AUTO_TEST_CASE(a_clock_that_swings_pays_the_published_bucket_twice) {
  const Explored explored = explore(contracts / "token_bucket_as_published.lua", scope(2, 2, 1, 1, 1));
  BOOST_TEST((explored.outcome() == Explored::Outcome::fail));
  BOOST_TEST(way_of(explored) == "A clock back A tick B");
}

BOOST_AUTO_TEST_CASE(a_client_that_dies_between_incr_and_expire_leaves_a_key_for_good) {
  const Explored sound = explore(contracts / "incr_then_expire.lua", scope(2, 1, 1, 1));
  BOOST_TEST((sound.outcome() == Explored::Outcome::pass));
  const Explored explored = explore(contracts / "incr_then_expire.lua", scope(2, 1, 1, 1, 1));
  BOOST_TEST((explored.outcome() == Explored::Outcome::fail));
  BOOST_TEST(explored.search.violation == harness::explore::endless_key);
  BOOST_TEST(explored.shortest.size() == 1U);
}

BOOST_AUTO_TEST_CASE(watch_and_retry_is_safe_and_its_attempts_grow_with_the_clients) {
  std::vector<std::size_t> longest;
  for (const int clients : {1, 2, 3, 4}) {
    const Explored explored = explore(contracts / "watch_and_retry.lua", scope(clients, 1, 0, clients));
    BOOST_TEST(explored.search.violations.empty());
    BOOST_TEST(explored.audit_agrees());
    longest.push_back(explored.longest_attempt);
  }
  BOOST_TEST(longest == (std::vector<std::size_t>{2, 4, 6, 8}));
}

BOOST_AUTO_TEST_CASE(without_its_watch_the_same_client_fails) {
  const std::string take =
      "%s\nlocal n = tonumber(redis.call('GET', call.key) or 0)\n"
      "if n >= call.limit.capacity then return { allowed = false } end\n"
      "local r = redis.pipeline { {'MULTI'}, {'INCR', call.key}, {'EXEC'} }\n"
      "return { allowed = r[3] and true or false }";
  const auto with = [&](const std::string& first) { return std::string{take}.replace(0, 2, first); };
  BOOST_TEST(program(with("redis.call('WATCH', call.key)"), scope(3, 1, 0, 1)).search.violations.empty());
  BOOST_TEST(!program(with(""), scope(3, 1, 0, 1)).search.violations.empty());
}

BOOST_AUTO_TEST_CASE(a_transaction_of_many_steps_is_restored_in_the_middle) {
  const Explored explored = program(
      "redis.call('WATCH', call.key)\n"
      "local n = tonumber(redis.call('GET', call.key) or 0)\n"
      "if n >= call.limit.capacity then redis.call('UNWATCH') return { allowed = false } end\n"
      "redis.call('MULTI') redis.call('INCR', call.key)\n"
      "return { allowed = redis.call('EXEC') ~= nil }",
      scope(2, 2, 1, 1));
  BOOST_TEST(explored.search.violations.empty());
  BOOST_TEST(explored.audit_agrees());
  BOOST_TEST(explored.search.marked[Mark::denied] > 0U);
}

BOOST_AUTO_TEST_CASE(a_watched_key_that_expires_or_is_evicted_stops_the_transaction) {
  // The key is there at first: who watched it, and then reads it gone, must not run.
  const Explored explored = program(
      "if call.attempt == 1 then redis.call('SET', call.key, 'x', 'PX', 1) return { allowed = false } end\n"
      "redis.call('WATCH', call.key)\n"
      "local r = redis.pipeline { {'MULTI'}, {'GET', call.key}, {'EXEC'} }\n"
      "return { allowed = r[3] and not r[3][1] or false }",
      scope(1, 2, 2, 1, 1));
  BOOST_TEST(explored.audit_agrees());
  BOOST_TEST(explored.search.marked[Mark::expired] > 0U);
}

BOOST_AUTO_TEST_CASE(symmetry_ends_where_a_client_says_who_it_is) {
  const Explored named = explore(contracts / "zcard_then_zadd.lua", scope(2, 1, 0, 1));
  BOOST_TEST(!named.symmetric);
  BOOST_TEST(named.identity_matters);
  BOOST_TEST((named.outcome() == Explored::Outcome::fail));
  const Explored nameless = explore(contracts / "hash_read_then_write.lua", scope(2, 1, 0, 1));
  BOOST_TEST(nameless.symmetric);
  BOOST_TEST((nameless.outcome() == Explored::Outcome::fail));
}

BOOST_AUTO_TEST_CASE(a_lost_reply_is_an_error_that_a_client_may_answer_badly) {
  const std::string fail_open =
      "local ok, n = pcall(redis.call, 'INCR', call.key)\n"
      "return { allowed = not ok or n <= call.limit.capacity }";
  BOOST_TEST(program(fail_open, scope(2, 1, 0, 1)).search.violations.empty());
  const Explored explored = program(fail_open, scope(2, 1, 0, 1, 1));
  BOOST_TEST((explored.outcome() == Explored::Outcome::fail));
  BOOST_TEST(way_of(explored) == "A B[reply lost before the effect]");
  const std::string fail_closed =
      "local ok, n = pcall(redis.call, 'INCR', call.key)\n"
      "return { allowed = ok and n <= call.limit.capacity }";
  BOOST_TEST(program(fail_closed, scope(2, 1, 0, 1, 1)).search.violations.empty());
}

BOOST_AUTO_TEST_CASE(a_scope_in_which_nobody_can_be_denied_is_inconclusive) {
  const Explored explored = explore(contracts / "incr_and_compare.lua", scope(2, 1, 0, 5));
  BOOST_TEST((explored.outcome() == Explored::Outcome::inconclusive));
}

BOOST_AUTO_TEST_CASE(the_same_search_says_the_same_twice) {
  const auto said = [] {
    Explored explored = explore(get_then_set, scope(3, 1, 1, 1, 1));
    explored.seconds = 0;
    return explored_text(explored) + explored_json(explored, 1);
  };
  BOOST_TEST(said() == said());
}

BOOST_AUTO_TEST_CASE(what_cannot_be_restored_is_refused_by_name) {
  const auto explains = [](const harness::ContractError& error) {
    return std::string{error.what()}.find("FUNCTION") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION((void)program("redis.call('FUNCTION', 'LIST') return { allowed = true }", scope(1, 1, 0, 1)),
                        harness::ContractError, explains);
  BOOST_CHECK_EXCEPTION((void)explore(get_then_set, scope(2, 1, 0, 5'000)), harness::ContractError,
                        [](const harness::ContractError& error) {
                          return std::string{error.what()}.find("--capacity 5000: the contract claims 1 to 1000") == 0;
                        });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::gate
