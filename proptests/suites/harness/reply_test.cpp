#include "proptests/harness/reply.h"

#include <boost/test/unit_test.hpp>

namespace weir::harness {
namespace {

using namespace std::string_literals;

Reply integer(std::int64_t value) {
  return {.kind = Reply::Kind::integer, .integer = value};
}

Reply text(Reply::Kind kind, std::string value) {
  return {.kind = kind, .text = std::move(value)};
}

Reply array(std::vector<Reply> elements) {
  return {.kind = Reply::Kind::array, .elements = std::move(elements)};
}

BOOST_AUTO_TEST_SUITE(show_suite)

BOOST_AUTO_TEST_CASE(each_kind_of_reply_reads_as_itself) {
  BOOST_TEST(show(Reply{}) == "nil");
  BOOST_TEST(show(integer(-7)) == "-7");
  BOOST_TEST(show(text(Reply::Kind::string, "a b")) == R"("a b")");
  BOOST_TEST(show(text(Reply::Kind::status, "OK")) == "OK");
  BOOST_TEST(show(text(Reply::Kind::error, "ERR no")) == "(error) ERR no");
  BOOST_TEST(show(array({})) == "{}");
  BOOST_TEST(show(array({integer(1), array({Reply{}}), text(Reply::Kind::string, "")})) == R"({1, {nil}, ""})");
}

BOOST_AUTO_TEST_CASE(binary_is_escaped) {
  BOOST_TEST(show(text(Reply::Kind::string, "a\0\xff\n\"\\"s)) == R"("a\x00\xff\x0a\"\\")");
}

BOOST_AUTO_TEST_CASE(a_command_quotes_only_the_words_that_need_it) {
  BOOST_TEST(show(Command{"SET", "rl:{a}", "\x01", "PX", "1000"}) == R"(SET rl:{a} "\x01" PX 1000)");
  BOOST_TEST(show(Command{"ECHO", "", "a b", "\""}) == R"(ECHO "" "a b" "\"")");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::harness
