// `weir peek` on a real server.

#include <boost/test/unit_test.hpp>

#include "proptests/suites/gate/desk.h"
#include "proptests/suites/lua/redis.h"

namespace weir::suites {
namespace {

struct PeekDesk : Desk, Redis {
  [[nodiscard]] Ran peek(const std::string& key) const { return run({"peek", key, "--socket", server.socket_path()}); }
};

BOOST_FIXTURE_TEST_SUITE(peek_suite, PeekDesk)

BOOST_AUTO_TEST_CASE(a_stored_bucket_is_told_in_words) {
  connection.run(take("rl:{a}", {"10", "2", "4"}));
  expect(peek("rl:{a}"), passed,
         {"rl:{a}", "1 per 500 ms", "4 tokens", "as of 2023-11-14 22:13:20.000000 UTC", "full again in 2 s",
          "lives    until"});
  server.set_clock(server.clock() + Micros{500'000});
  expect(peek("rl:{a}"), passed, {"500 ms later", "owed now 3 tokens"});
  server.set_clock(server.clock() - Micros{1'000'000});
  expect(peek("rl:{a}"), passed, {"the clock went back", "owed now 5 tokens"});
}

BOOST_AUTO_TEST_CASE(a_bucket_that_is_not_there_is_full) {
  expect(peek("rl:{nobody}"), passed, {"rl:{nobody}", "absent", "full"});
}

BOOST_AUTO_TEST_CASE(what_is_no_bucket_is_named) {
  connection.run({"SET", "text", "hello"});
  expect(peek("text"), usage, {"text", "holds no bucket"});
  connection.run({"SADD", "set", "member"});
  expect(peek("set"), usage, {"set", "holds no bucket"});
}

BOOST_AUTO_TEST_CASE(a_server_that_is_not_there_is_named) {
  expect(run({"peek", "key", "--socket", "/nowhere/redis.sock"}), environment, {"/nowhere/redis.sock", "--socket"});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::suites
