#include "proptests/harness/connection.h"

#include <signal.h>

#include <boost/test/unit_test.hpp>

#include "proptests/harness/error.h"
#include "proptests/harness/server.h"

namespace weir::harness {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

std::string why_no_reply(Connection& connection, const Command& command) {
  try {
    return "replied " + show(connection.run(command));
  } catch (const NoReply& error) {
    return error.what();
  }
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_SUITE(connection_suite)

BOOST_AUTO_TEST_CASE(every_kind_of_reply_arrives_as_itself) {
  const Server server;
  Connection connection = server.connect();
  const auto eval = [&](const char* script) { return show(connection.run({"EVAL", script, "0"})); };
  BOOST_TEST(eval("return {1, 'a', false, {}, {-2, {'b'}}, redis.status_reply('FINE')}") ==
             R"({1, "a", nil, {}, {-2, {"b"}}, FINE})");
  BOOST_TEST(eval("return redis.error_reply('ERR as asked')") == "(error) ERR as asked");
  BOOST_TEST(eval("return {{err='ERR inside'}}") == "{(error) ERR inside}");
  BOOST_TEST(eval("return false") == "nil");
  BOOST_TEST(eval("return 9007199254740992") == "9007199254740992");
}

BOOST_AUTO_TEST_CASE(words_and_replies_are_binary_safe) {
  const Server server;
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  BOOST_CHECK(server.connect().run({"ECHO", bytes}).text == bytes);
  BOOST_CHECK(server.connect().run({"ECHO", ""}).text.empty());
}

BOOST_AUTO_TEST_CASE(a_pipeline_of_10000_commands_with_large_arguments_and_replies_comes_back_in_order) {
  const Server server;
  Connection connection = server.connect();
  std::vector<Command> commands;
  for (int i = 0; i < 10'000; ++i) commands.push_back({"ECHO", std::to_string(i) + std::string(4096, 'x')});
  const std::vector<Reply> replies = connection.pipeline(commands);
  BOOST_REQUIRE(replies.size() == commands.size());
  for (std::size_t i = 0; i < replies.size(); ++i) BOOST_REQUIRE(replies[i].text == commands[i][1]);
}

BOOST_AUTO_TEST_CASE(replies_wait_for_their_receiver_oldest_first) {
  const Server server;
  Connection connection = server.connect();
  connection.send(std::vector<Command>{{"ECHO", "1"}, {"ECHO", "2"}});
  connection.send(std::vector<Command>{{"ECHO", "3"}});
  BOOST_TEST(connection.receive(1).at(0).text == "1");
  BOOST_TEST(connection.receive(0).empty());
  const std::vector<Reply> rest = connection.receive(2);
  BOOST_TEST(rest.at(0).text == "2");
  BOOST_TEST(rest.at(1).text == "3");
}

BOOST_AUTO_TEST_CASE(a_hung_server_is_no_reply_and_the_connection_is_dead_from_then_on) {
  const Server server;
  Connection connection = server.connect(50ms);
  connection.run({"PING"});
  ::kill(server.pid(), SIGSTOP);
  BOOST_TEST(why_no_reply(connection, {"ECHO", "late"}) == "no reply within 50 ms");
  ::kill(server.pid(), SIGCONT);
  // The late reply is never taken for another command's.
  BOOST_TEST(mentions(why_no_reply(connection, {"PING"}), "dead"));
  BOOST_TEST(server.connect().run({"PING"}).text == "PONG");
}

BOOST_AUTO_TEST_CASE(a_server_too_hung_to_take_what_we_send_is_no_reply) {
  const Server server;
  Connection connection = server.connect(50ms);
  ::kill(server.pid(), SIGSTOP);
  BOOST_TEST(why_no_reply(connection, {"ECHO", std::string(64 << 20, 'x')}) == "no reply within 50 ms");
}

BOOST_AUTO_TEST_CASE(a_server_too_hung_to_take_connections_is_no_reply) {
  const Server server{{.arguments = {"--tcp-backlog", "1"}}};
  ::kill(server.pid(), SIGSTOP);
  std::vector<Connection> queued;
  BOOST_CHECK_THROW(while (queued.size() < 10) queued.push_back(server.connect(50ms)), NoReply);
}

BOOST_AUTO_TEST_CASE(a_killed_server_is_no_reply_on_old_connections_and_on_new_ones) {
  Server server;
  Connection connection = server.connect();
  server.kill();
  BOOST_TEST(mentions(why_no_reply(connection, {"PING"}), "ended the connection"));
  BOOST_CHECK_THROW(server.connect(), NoReply);
}

BOOST_AUTO_TEST_CASE(a_reply_nested_deeper_than_can_be_read_is_no_reply_that_says_so) {
  const Server server;
  Connection connection = server.connect();
  BOOST_TEST(show(connection.run({"EVAL", "return {{{{{{{1}}}}}}}", "0"})) == "{{{{{{{1}}}}}}}");
  BOOST_TEST(mentions(why_no_reply(connection, {"EVAL", "return {{{{{{{{{1}}}}}}}}}", "0"}), "depth"));
}

BOOST_AUTO_TEST_CASE(a_socket_path_longer_than_a_socket_takes_is_named) {
  BOOST_CHECK_EXCEPTION(Connection("/" + std::string(200, 'x'), 50ms), NoReply,
                        [](const NoReply& error) { return mentions(error.what(), "longer than 107 bytes"); });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::harness
