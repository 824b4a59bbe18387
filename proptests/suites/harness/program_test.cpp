#include "proptests/harness/program.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "proptests/suites/harness/lua_folder.h"

namespace weir::harness {
namespace {

using Replies = std::vector<Reply>;

const Move get_k = Send{{{"GET", "k"}}, false};

BOOST_FIXTURE_TEST_SUITE(program_tree, LuaFolder)

BOOST_AUTO_TEST_CASE(a_move_is_a_function_of_the_call_and_the_replies_seen) {
  auto host = program(
      "local n = redis.call('GET', call.key)\nlocal m = redis.call('SET', call.key, n)\n"
      "return { allowed = true, remaining = n + m }");
  ProgramTree tree{host};
  const Call call = call_of("k");
  const auto set = [](const char* value) { return Move{Send{{{"SET", "k", value}}, false}}; };
  BOOST_TEST((tree.move(call, {}) == get_k));
  BOOST_TEST((tree.move(call, Replies{integer(1)}) == set("1")));
  // A second reply to the same GET: the first coroutine is past it.
  BOOST_TEST((tree.move(call, Replies{integer(2)}) == set("2")));
  BOOST_TEST((tree.move(call, Replies{integer(1)}) == set("1")));
  BOOST_TEST(*std::get<Answer>(tree.move(call, Replies{integer(2), integer(40)})).remaining == 42);
  BOOST_TEST(*std::get<Answer>(tree.move(call, Replies{integer(1), integer(40)})).remaining == 41);
  // From nothing known, in one go.
  BOOST_TEST(*std::get<Answer>(tree.move(call, Replies{integer(3), integer(4)})).remaining == 7);
  BOOST_TEST(tree.size() == 7U);
}

BOOST_AUTO_TEST_CASE(what_was_seen_before_is_not_asked_again) {
  // Each time the Lua runs it says another number.
  auto host = program("n = (n or 0) + 1 redis.call('GET', n) return { allowed = true, remaining = n }");
  ProgramTree tree{host};
  const Call call = call_of("k");
  const Move first = tree.move(call, {});
  BOOST_TEST((first == Move{Send{{{"GET", "1"}}, false}}));
  BOOST_TEST((tree.move(call, {}) == first));
  tree.clear();
  BOOST_TEST(tree.size() == 0U);
  BOOST_TEST((tree.move(call, {}) == Move{Send{{{"GET", "2"}}, false}}));
}

BOOST_AUTO_TEST_CASE(a_program_that_keeps_state_outside_of_redis_is_refused_where_it_shows) {
  auto host = program("n = (n or 0) + 1 redis.call('GET', n) return { allowed = true }");
  ProgramTree tree{host};
  const Call call = call_of("k");
  BOOST_TEST((tree.move(call, {}) == Move{Send{{{"GET", "1"}}, false}}));
  BOOST_TEST(std::get<Answer>(tree.move(call, Replies{integer(1)})).allowed);
  const Move again = tree.move(call, Replies{integer(2)});
  const auto* refusal = std::get_if<Refusal>(&again);
  BOOST_REQUIRE(refusal != nullptr);
  BOOST_TEST(without_directory(refusal->message) ==
             "c.lua: take did something else when it was run again with the same call and replies; it must keep no "
             "state between attempts but in Redis");
}

BOOST_AUTO_TEST_CASE(calls_of_different_clients_are_different_programs) {
  auto host = program("redis.call('GET', call.client) return { allowed = true }");
  ProgramTree tree{host};
  Call call = call_of("k");
  BOOST_TEST((tree.move(call, {}) == Move{Send{{{"GET", "1"}}, false}}));
  call.client = 2;
  BOOST_TEST((tree.move(call, {}) == Move{Send{{{"GET", "2"}}, false}}));
}

BOOST_AUTO_TEST_CASE(a_script_is_a_program_of_one_step_and_of_two_where_it_is_not_known) {
  auto host = script("return { call.key }", "return { call.cost }");
  ProgramTree tree{host};
  const Call call = call_of("k", "7");
  // The digest is sha1sum's of "return 1".
  const Move evalsha = Send{{{"EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", "k", "7"}}, false};
  const Move eval = Send{{{"EVAL", "return 1", "1", "k", "7"}}, false};
  const Reply no_script = error("NOSCRIPT No matching script. Please use EVAL.");
  BOOST_TEST((tree.move(call, {}) == evalsha));
  BOOST_TEST(std::get<Answer>(tree.move(call, Replies{integer(1)})).allowed);
  BOOST_TEST(!std::get<Answer>(tree.move(call, Replies{integer(0)})).allowed);
  BOOST_TEST((tree.move(call, Replies{no_script}) == eval));
  BOOST_TEST(std::get<Answer>(tree.move(call, Replies{no_script, integer(1)})).allowed);
  BOOST_TEST((tree.move(call, Replies{error("ERR no")}) ==
              Move{Refusal{Refusal::Kind::raised, "the script replied (error) ERR no"}}));
}

BOOST_AUTO_TEST_CASE(replies_that_never_repeat_do_not_fill_memory) {
  auto host = program("local n = redis.call('GET', call.key) redis.call('SET', call.key, n) return { allowed = true }");
  ProgramTree tree{host};
  const Call call = call_of("k");
  std::size_t most = 0;
  for (int i = 0; i < 60'000; ++i) {
    BOOST_REQUIRE((tree.move(call, Replies{integer(i)}) == Move{Send{{{"SET", "k", std::to_string(i)}}, false}}));
    most = std::max(most, tree.size());
  }
  BOOST_TEST(most <= 50'001U);
  BOOST_TEST(tree.size() < 15'000U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::harness
