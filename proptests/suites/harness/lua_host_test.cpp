#include "proptests/harness/lua_host.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "proptests/suites/harness/lua_folder.h"

namespace weir::harness {

std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  constexpr const char* kinds[] = {"raised", "wrong_shape", "deadline"};
  return out << kinds[static_cast<int>(refusal.kind)] << ": " << refusal.message;
}

namespace {

using Kind = Refusal::Kind;
using Words = std::vector<std::string>;

struct Folder : LuaFolder {
  Words args_of(const std::string& body, const Call& call) const {
    auto host = script("return {}", body);
    return std::get<Arguments>(host.arguments({&call, 1})[0]).args;
  }
  std::variant<Answer, Refusal> answer_of(const std::string& body, const Reply& reply) const {
    auto host = script("return {}", "return {}", body);
    return without_directory(host.answers({&reply, 1})[0]);
  }
  std::variant<Answer, Refusal> without_directory(std::variant<Answer, Refusal> answer) const {
    if (auto* refusal = std::get_if<Refusal>(&answer)) refusal->message = Scratch::without_directory(refusal->message);
    return answer;
  }
  template <class... Types>
  Refusal refusal(const std::variant<Types...>& result) const {
    const auto* refused = std::get_if<Refusal>(&result);
    BOOST_REQUIRE(refused != nullptr);
    return {refused->kind, Scratch::without_directory(refused->message)};
  }
};

const std::chrono::milliseconds short_deadline{400};
const std::chrono::milliseconds long_deadline{20'000};

BOOST_FIXTURE_TEST_SUITE(lua_host, Folder)

BOOST_AUTO_TEST_CASE(keys_and_args_see_the_whole_call) {
  auto host = script("return { 'rl:{' .. call.key .. '}' }",
                     "return { call.limit.capacity, call.limit.refill, call.limit.period_us, call.limit.period_ms, "
                     "call.limit.period_s, call.cost, call.now_us, call.client, call.attempt }");
  const Call call = call_of("a b\0c");
  const auto arguments = std::get<Arguments>(host.arguments({&call, 1})[0]);
  BOOST_TEST(arguments.keys == Words{"rl:{a b}"}, boost::test_tools::per_element());
  const Words expected{"100", "50", "1000000", "1000", "1", "1", "1700000000000000", "1", "1"};
  BOOST_TEST(arguments.args == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_period_that_is_no_whole_second_has_none) {
  Call call = call_of("k");
  call.period_us = "1500000";
  BOOST_TEST((args_of("return { tostring(call.limit.period_s), call.limit.period_ms }", call) == Words{"nil", "1500"}));
  call.period_us = "abc";
  BOOST_TEST((args_of("return { tostring(call.limit.period_ms), call.limit.period_us }", call) == Words{"nil", "abc"}));
}

BOOST_AUTO_TEST_CASE(a_quantity_is_a_number_where_tonumber_reads_one) {
  const std::vector<std::pair<Quantity, std::string>> rows{
      {"7", "number"},   {"-1", "number"},  {"1.5", "number"},  {"1e300", "number"}, {"1e3", "number"},
      {"nan", "number"}, {"inf", "number"}, {"-inf", "number"}, {"0x10", "number"},  {" 3 ", "number"},
      {"abc", "string"}, {"", "string"},    {"1 2", "string"},  {"7x", "string"},    {"--1", "string"},
  };
  for (const auto& [quantity, type] : rows)
    BOOST_TEST(args_of("return { type(call.cost) }", call_of("k", quantity))[0] == type, quantity);
}

BOOST_AUTO_TEST_CASE(numbers_are_written_as_clients_send_them) {
  const auto written = [&](const std::string& number) { return args_of("return { " + number + " }", call_of("k"))[0]; };
  BOOST_TEST(written("0") == "0");
  BOOST_TEST(written("-0") == "0");
  BOOST_TEST(written("1e3") == "1000");
  BOOST_TEST(written("1700000000000001") == "1700000000000001");
  BOOST_TEST(written("2^53") == "9007199254740992");
  BOOST_TEST(written("-2^53") == "-9007199254740992");
  BOOST_TEST(written("2^60") == "1.152921504606847e+18");
  BOOST_TEST(written("0.1") == "0.10000000000000001");
  BOOST_TEST(written("1e300") == "1.0000000000000001e+300");
  BOOST_TEST(written("0/0") == "nan");
  BOOST_TEST(written("-1/0") == "-inf");
  BOOST_TEST(written("'a\\0b'") == std::string("a\0b", 3));
}

BOOST_AUTO_TEST_CASE(keys_and_args_of_another_shape_are_refused_by_line_and_name) {
  struct Row {
    const char* body;
    Kind kind;
    const char* message;
  };
  const std::vector<Row> rows{
      {"return 'k'", Kind::wrong_shape, "c.lua:3: args: returned string; it must return a list of strings and numbers"},
      {"", Kind::wrong_shape, "c.lua:3: args: returned nil; it must return a list of strings and numbers"},
      {"return { 1, true }", Kind::wrong_shape, "c.lua:3: args: element 2 is boolean; it must be a string or a number"},
      {"return { 1, nil, 3 }", Kind::wrong_shape,
       "c.lua:3: args: is a list of 1 with 1 entries besides; it must be a list alone, and a nil inside ends one"},
      {"return { cost = 1 }", Kind::wrong_shape,
       "c.lua:3: args: is a list of 0 with 1 entries besides; it must be a list alone, and a nil inside ends one"},
      {"return { call.limits.capacity }", Kind::raised, "c.lua:3: attempt to index field 'limits' (a nil value)"},
      {"error('no ' .. call.key)", Kind::raised, "c.lua:3: no k"},
      {"error({ code = 1 })", Kind::raised, "an error that is a table, not a message"},
      {"return { string.rep('x', 2^24) }", Kind::wrong_shape,
       "c.lua:3: args: more than 16 MiB; no Redis script takes that"},
  };
  const Call call = call_of("k");
  for (const Row& row : rows) {
    auto host = script("return {}", row.body);
    BOOST_TEST(refusal(host.arguments({&call, 1})[0]) == (Refusal{row.kind, row.message}));
  }
}

BOOST_AUTO_TEST_CASE(one_bad_call_of_a_batch_spoils_no_other) {
  auto host = script("if call.key == '3' then error('three') end return { call.key }");
  std::vector<Call> calls;
  for (int i = 0; i < 6; ++i) calls.push_back(call_of(std::to_string(i)));
  const auto arguments = host.arguments(calls);
  BOOST_REQUIRE(arguments.size() == calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i == 3)
      BOOST_TEST(refusal(arguments[i]) == (Refusal{Kind::raised, "c.lua:2: three"}));
    else
      BOOST_TEST(std::get<Arguments>(arguments[i]).keys[0] == calls[i].key);
  }
}

BOOST_AUTO_TEST_CASE(a_reply_reads_as_it_does_in_a_client) {
  const auto shown = [&](const Reply& reply) {
    const auto answer = answer_of(
        "local function show(v) if type(v) ~= 'table' then return type(v) .. ' ' .. tostring(v) end "
        "if v.err then return 'err ' .. v.err end "
        "local all = {} for i = 1, #v do all[i] = show(v[i]) end return '{' .. table.concat(all, ', ') .. '}' end "
        "error(show(r), 0)",
        reply);
    return std::get<Refusal>(answer).message;
  };
  BOOST_TEST(shown(integer(-7)) == "number -7");
  BOOST_TEST(shown(text("a")) == "string a");
  BOOST_TEST(shown(status("OK")) == "string OK");
  BOOST_TEST(shown(Reply{}) == "nil nil");
  BOOST_TEST(shown(array({})) == "{}");
  BOOST_TEST(shown(array({integer(1), Reply{}, text("x"), array({error("ERR no")})})) ==
             "{number 1, boolean false, string x, {err ERR no}}");
}

BOOST_AUTO_TEST_CASE(an_answer_is_read_in_every_unit) {
  const Reply r = array({integer(0), integer(33)});
  const auto answer = [&](const std::string& body) {
    return std::get<Answer>(answer_of("return { " + body + " }", r));
  };
  BOOST_TEST(
      (answer("allowed = r[1] == 1, retry_after_ms = r[2]") ==
       Answer{.allowed = false, .retry_after_us = 33'000, .never = false, .remaining = {}, .reset_after_us = {}}));
  BOOST_TEST(
      (answer("allowed = true, retry_after_us = 0, remaining = 5, reset_after_s = 2") ==
       Answer{.allowed = true, .retry_after_us = 0, .never = false, .remaining = 5, .reset_after_us = 2'000'000}));
  BOOST_TEST(*answer("allowed = false, retry_after_s = 0.25").retry_after_us == 250'000);
  BOOST_TEST(*answer("allowed = false, retry_after_s = 0.000123").retry_after_us == 123);
  BOOST_TEST(*answer("allowed = false, retry_after_ms = 0.001").retry_after_us == 1);
  for (const char* const unit : {"us", "ms", "s"}) {
    const Answer never = answer("allowed = false, retry_after_" + std::string{unit} + " = -1");
    BOOST_TEST(never.never);
    BOOST_TEST(!never.retry_after_us.has_value());
  }
}

BOOST_AUTO_TEST_CASE(an_answer_of_another_shape_is_refused_and_names_the_field) {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"return true", "returned boolean; it must return a table like { allowed = true }"},
      {"return { r == 1 }", "returned a list; it must return a table like { allowed = true }"},
      {"return { retry_after_ms = 1 }", "allowed is not there; it must be true or false"},
      {"return { allowed = r }", "allowed is a number; it must be true or false"},
      {"return { allowed = true, retry_ms = 1 }",
       "retry_ms is no field of an answer; the fields are allowed, remaining, retry_after_us, _ms or _s and "
       "reset_after_us, _ms or _s"},
      {"return { allowed = true, remaining = '1' }", "remaining is a string; it must be a number, or not be there"},
      {"return { allowed = true, remaining = 0.5 }", "remaining is 0.5; it must be a whole number, at most 2^53"},
      {"return { allowed = false, retry_after_us = 0.5 }",
       "retry_after_us is 0.5; it must be a whole number of microseconds, at most 2^53"},
      {"return { allowed = false, retry_after_s = 1 / 3 }",
       "retry_after_s is 0.33333333333333331; it must be a whole number of microseconds, at most 2^53"},
      {"return { allowed = false, reset_after_ms = 0/0 }",
       "reset_after_ms is nan; it must be a whole number of microseconds, at most 2^53"},
      {"return { allowed = false, reset_after_s = 1/0 }",
       "reset_after_s is inf; it must be a whole number of microseconds, at most 2^53"},
      {"return { allowed = false, retry_after_s = 1, retry_after_ms = 1000 }",
       "retry_after is told in two units; one is enough"},
  };
  for (const auto& [body, message] : rows)
    BOOST_TEST(refusal(answer_of(body, integer(1))) == (Refusal{Kind::wrong_shape, "c.lua:4: reply: " + message}));
}

BOOST_AUTO_TEST_CASE(what_the_limiter_tells_is_seen_from_its_answers) {
  auto host =
      script("return {}", "return {}", "return { allowed = r[1] == 1, retry_after_ms = r[2], remaining = r[3] }");
  const std::vector<Reply> allowed{array({integer(1), integer(0)})};
  BOOST_TEST(host.answers(allowed).size() == 1);
  BOOST_TEST(!host.contract().replies_retry);
  BOOST_TEST(!host.contract().replies_remaining);
  const std::vector<Reply> denied{array({integer(0), integer(9), integer(0)})};
  BOOST_TEST(host.answers(denied).size() == 1);
  BOOST_TEST(host.contract().replies_retry);
  BOOST_TEST(host.contract().replies_remaining);
  BOOST_TEST(!host.contract().replies_reset);
}

// Runaways: each in the middle of a batch, whose other calls are answered.

void only_the_middle_call_is_refused(const Folder& folder, const std::string& body, const Refusal& expected,
                                     std::chrono::milliseconds deadline = short_deadline) {
  auto host = folder.script("if call.key == '2' then " + body + " end return { call.key }", "return {}",
                            "return { allowed = true }", deadline);
  std::vector<Call> calls;
  for (int i = 0; i < 5; ++i) calls.push_back(call_of(std::to_string(i)));
  const auto arguments = host.arguments(calls);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (i == 2)
      BOOST_TEST(folder.refusal(arguments[i]) == expected);
    else
      BOOST_TEST(std::get<Arguments>(arguments[i]).keys[0] == calls[i].key);
  }
}

const Refusal too_late{Kind::deadline, "c.lua: keys or args did not end within 400 ms"};
const Refusal too_much{Kind::raised, "not enough memory; a contract's Lua may use 256 MiB"};

BOOST_AUTO_TEST_CASE(a_plain_loop_is_killed) {
  only_the_middle_call_is_refused(*this, "while true do end", too_late);
}

BOOST_AUTO_TEST_CASE(a_loop_that_swallows_its_errors_is_killed) {
  only_the_middle_call_is_refused(*this, "while true do pcall(function() while true do end end) end", too_late);
}

BOOST_AUTO_TEST_CASE(a_pattern_that_never_ends_is_killed) {
  only_the_middle_call_is_refused(*this, "string.find(string.rep('a', 200), string.rep('a-', 60) .. 'b')", too_late);
}

BOOST_AUTO_TEST_CASE(a_loop_in_a_coroutine_is_killed) {
  only_the_middle_call_is_refused(*this, "coroutine.wrap(function() while true do end end)()", too_late);
}

BOOST_AUTO_TEST_CASE(a_memory_bomb_is_refused) {
  only_the_middle_call_is_refused(*this, "local s = string.rep('x', 2^30)", too_much, long_deadline);
  only_the_middle_call_is_refused(*this, "local s = 'x' while true do s = s .. s end", too_much, long_deadline);
  only_the_middle_call_is_refused(*this, "local t = {} for i = 1, 1e9 do t[i] = { i } end", too_much, long_deadline);
}

BOOST_AUTO_TEST_CASE(a_recursion_without_end_is_refused) {
  only_the_middle_call_is_refused(*this, "local function f() return 1 + f() end f()",
                                  Refusal{Kind::raised, "c.lua:2: stack overflow"});
}

BOOST_AUTO_TEST_CASE(a_reply_function_that_hangs_is_refused_as_one) {
  auto host = script("return {}", "return {}", "while r == 0 do end return { allowed = true }", short_deadline);
  const std::vector<Reply> replies{integer(1), integer(0), integer(1)};
  const auto answers = host.answers(replies);
  BOOST_TEST(std::get<Answer>(answers[0]).allowed);
  BOOST_TEST(refusal(answers[1]) == (Refusal{Kind::deadline, "c.lua: reply did not end within 400 ms"}));
  BOOST_TEST(std::get<Answer>(answers[2]).allowed);
}

BOOST_AUTO_TEST_CASE(a_batch_of_nothing_but_hanging_calls_costs_three_deadlines) {
  auto host = script("while true do end", "return {}", "return {}", std::chrono::milliseconds{100});
  const std::vector<Call> calls(50, call_of("k"));
  const auto arguments = host.arguments(calls);
  BOOST_REQUIRE(arguments.size() == calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i)
    BOOST_TEST(
        refusal(arguments[i]) ==
        (Refusal{Kind::deadline, i < 3 ? "c.lua: keys or args did not end within 100 ms"
                                       : "c.lua: keys or args was not asked: too many calls before it did not end"}));
}

// The sandbox.

BOOST_AUTO_TEST_CASE(nothing_that_reaches_outside_is_there) {
  for (const char* const name : {"os",      "io",          "ffi",      "debug",
                                 "package", "require",     "module",   "jit",
                                 "dofile",  "loadfile",    "load",     "loadstring",
                                 "getfenv", "setfenv",     "newproxy", "collectgarbage",
                                 "gcinfo",  "string.dump", "_G.os",    "getmetatable('').__index.dump"})
    BOOST_TEST(args_of("return { type(" + std::string{name} + ") }", call_of("k"))[0] == "nil", name);
}

BOOST_AUTO_TEST_CASE(plain_lua_is_there) {
  for (const char* const name :
       {"pairs",      "ipairs",        "pcall",          "xpcall",       "error",
        "assert",     "select",        "tonumber",       "tostring",     "type",
        "unpack",     "string.format", "string.rep",     "table.concat", "table.sort",
        "math.floor", "math.random",   "coroutine.wrap", "setmetatable", "getmetatable('').__index.rep",
        "bit.band"})
    BOOST_TEST(args_of("return { type(" + std::string{name} + ") }", call_of("k"))[0] == "function", name);
}

BOOST_AUTO_TEST_CASE(a_string_library_broken_by_the_contract_breaks_only_the_contract) {
  auto host =
      script("getmetatable('').__index = nil; string.format = nil; type = nil; error = nil; return { call.key }");
  const std::vector<Call> calls{call_of("a"), call_of("b")};
  for (const auto& arguments : host.arguments(calls)) BOOST_TEST(std::get<Arguments>(arguments).keys.size() == 1);
}

BOOST_AUTO_TEST_CASE(random_numbers_are_a_function_of_the_call) {
  const std::string body = "return { math.random(1, 1000000000) }";
  Call call = call_of("k");
  const std::string first = args_of(body, call)[0];
  BOOST_TEST(args_of(body, call)[0] == first);
  call.attempt = 2;
  BOOST_TEST(args_of(body, call)[0] != first);
}

// Client programs.

BOOST_AUTO_TEST_CASE(a_program_moves_from_call_to_call_to_its_answer) {
  auto host = program(
      "local n = tonumber(redis.call('GET', call.key) or 0)\n"
      "if n >= call.limit.capacity then return { allowed = false } end\n"
      "local r = redis.pipeline { {'MULTI'}, {'INCR', call.key}, {'EXPIRE', call.key, 2}, {'EXEC'} }\n"
      "return { allowed = true, remaining = call.limit.capacity - r[4][1] }");
  BOOST_TEST((host.begin(1, call_of("k")) == Move{Send{{{"GET", "k"}}, false}}));
  BOOST_TEST((host.begin(2, call_of("k")) == Move{Send{{{"GET", "k"}}, false}}));
  const Move multi = host.resume(1, text("60"));
  BOOST_TEST((multi == Move{Send{{{"MULTI"}, {"INCR", "k"}, {"EXPIRE", "k", "2"}, {"EXEC"}}, true}}));
  BOOST_TEST((host.resume(2, text("100")) == Move{Answer{}}));
  const Reply exec = array({status("OK"), status("QUEUED"), status("QUEUED"), array({integer(61), integer(1)})});
  BOOST_TEST(
      (host.resume(1, exec) ==
       Move{Answer{.allowed = true, .retry_after_us = {}, .never = false, .remaining = 39, .reset_after_us = {}}}));
  BOOST_CHECK_THROW(host.resume(1, exec), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_watch_loop_tries_again_when_exec_says_nil) {
  auto host = program(
      "for try = 1, 3 do\n"
      "  redis.call('WATCH', call.key)\n"
      "  local n = tonumber(redis.call('GET', call.key) or 0)\n"
      "  local r = redis.pipeline { {'MULTI'}, {'SET', call.key, n + 1}, {'EXEC'} }\n"
      "  if r[3] then return { allowed = true, remaining = try } end\n"
      "end\n"
      "return { allowed = false }");
  const Reply lost = array({status("OK"), status("QUEUED"), Reply{}});
  const Reply won = array({status("OK"), status("QUEUED"), array({status("OK")})});
  BOOST_TEST((host.begin(1, call_of("k")) == Move{Send{{{"WATCH", "k"}}, false}}));
  BOOST_TEST((host.resume(1, status("OK")) == Move{Send{{{"GET", "k"}}, false}}));
  BOOST_TEST((host.resume(1, Reply{}) == Move{Send{{{"MULTI"}, {"SET", "k", "1"}, {"EXEC"}}, true}}));
  BOOST_TEST((host.resume(1, lost) == Move{Send{{{"WATCH", "k"}}, false}}));
  BOOST_TEST((host.resume(1, status("OK")) == Move{Send{{{"GET", "k"}}, false}}));
  BOOST_TEST((host.resume(1, text("1")) == Move{Send{{{"MULTI"}, {"SET", "k", "2"}, {"EXEC"}}, true}}));
  BOOST_TEST(*std::get<Answer>(host.resume(1, won)).remaining == 2);
}

BOOST_AUTO_TEST_CASE(an_error_reply_raises_from_call_and_can_be_caught) {
  auto host = program(
      "local ok, why = pcall(redis.call, 'GET', call.key)\n"
      "if ok then return { allowed = true } end\n"
      "local r = redis.pcall('SET', call.key, why)\n"
      "redis.call('DEL', r.err)\n"
      "return { allowed = false }");
  BOOST_TEST((host.begin(1, call_of("k")) == Move{Send{{{"GET", "k"}}, false}}));
  BOOST_TEST((host.resume(1, error("WRONGTYPE no")) == Move{Send{{{"SET", "k", "WRONGTYPE no"}}, false}}));
  BOOST_TEST((host.resume(1, error("READONLY no")) == Move{Send{{{"DEL", "READONLY no"}}, false}}));
  BOOST_TEST(refusal(host.resume(1, error("OOM no"))) == (Refusal{Kind::raised, "c.lua:5: OOM no"}));
}

BOOST_AUTO_TEST_CASE(a_program_that_misuses_redis_is_told_where) {
  const std::vector<std::pair<std::string, Refusal>> rows{
      {"redis.call()", {Kind::raised, "c.lua:2: redis.call: no command was given; it takes the command's words"}},
      {"redis.call('GET', nil)",
       {Kind::raised, "c.lua:2: redis.call: word 2 is a nil; it must be a string or a number"}},
      {"redis.pcall('GET', {})",
       {Kind::raised, "c.lua:2: redis.pcall: word 2 is a table; it must be a string or a number"}},
      {"redis.pipeline('GET')",
       {Kind::raised, "c.lua:2: redis.pipeline takes a list of commands: { {\"INCR\", key}, {\"EXPIRE\", key, 2} }"}},
      {"redis.pipeline { 'GET' }",
       {Kind::raised, "c.lua:2: redis.pipeline: command 1 is a string; it must be a list of words: {\"INCR\", key}"}},
      {"redis.pipeline { {'GET', true} }",
       {Kind::raised, "c.lua:2: redis.pipeline: command 1: word 2 is a boolean; it must be a string or a number"}},
      {"coroutine.yield(1)",
       {Kind::wrong_shape,
        "c.lua:2: take: yielded by itself; only redis.call, redis.pcall and redis.pipeline suspend a program"}},
      {"error(select(2, coroutine.resume(coroutine.create(function() redis.call('GET', 'k') end))), 0)",
       {Kind::raised, "c.lua:2: redis.call works only while take runs, and not inside a coroutine of its own"}},
      {"", {Kind::wrong_shape, "c.lua:2: take: returned nil; it must return a table like { allowed = true }"}},
  };
  for (const auto& [body, expected] : rows) {
    auto host = program(body);
    BOOST_TEST_CONTEXT(body) BOOST_TEST(refusal(host.begin(1, call_of("k"))) == expected);
  }
}

BOOST_AUTO_TEST_CASE(a_hanging_attempt_is_killed_and_the_others_go_on_where_they_were) {
  auto host = program(
      "local n = redis.call('GET', call.key)\n"
      "while call.key == 'bad' do end\n"
      "local m = redis.call('SET', call.key, n)\n"
      "return { allowed = true, remaining = n + m }",
      short_deadline);
  BOOST_TEST((host.begin(1, call_of("good")) == Move{Send{{{"GET", "good"}}, false}}));
  BOOST_TEST((host.begin(2, call_of("bad")) == Move{Send{{{"GET", "bad"}}, false}}));
  BOOST_TEST((host.resume(1, integer(3)) == Move{Send{{{"SET", "good", "3"}}, false}}));
  BOOST_TEST(refusal(host.resume(2, integer(1))) == (Refusal{Kind::deadline, "c.lua: take did not end within 400 ms"}));
  BOOST_TEST(*std::get<Answer>(host.resume(1, integer(4))).remaining == 7);
}

BOOST_AUTO_TEST_CASE(an_attempt_is_brought_to_any_point_from_its_replies) {
  auto host = program(
      "local n = redis.call('GET', call.key)\nlocal m = redis.call('SET', call.key, n)\n"
      "return { allowed = true, remaining = n + m }");
  const std::vector<Reply> replies{integer(3), integer(4)};
  const std::span<const Reply> all{replies};
  BOOST_TEST((host.replay(1, call_of("k"), all.first(0)) == Move{Send{{{"GET", "k"}}, false}}));
  BOOST_TEST((host.replay(1, call_of("k"), all.first(1)) == Move{Send{{{"SET", "k", "3"}}, false}}));
  BOOST_TEST(*std::get<Answer>(host.resume(1, integer(5))).remaining == 8);
  BOOST_TEST(*std::get<Answer>(host.replay(2, call_of("k"), all)).remaining == 7);
}

BOOST_AUTO_TEST_CASE(many_attempts_go_on_at_a_time_and_forgetting_frees_them) {
  auto host = program("local pad = string.rep(call.key, 100000)\nredis.call('GET', #pad)\nreturn { allowed = true }");
  // 5,000 attempts of 100 kB each would be twice what a contract's Lua may use.
  for (int attempt = 0; attempt < 5000; ++attempt) {
    BOOST_REQUIRE(
        (host.begin(attempt, call_of(std::to_string(attempt % 10))) == Move{Send{{{"GET", "100000"}}, false}}));
    if (attempt >= 100) host.forget(attempt - 100);
  }
  BOOST_TEST(std::get<Answer>(host.resume(4999, Reply{})).allowed);
}

BOOST_AUTO_TEST_CASE(no_file_is_left_open_in_the_child) {
  auto host = script("return {}");
  const std::string self = "/proc/self/task/" + std::to_string(::getpid()) + "/children";
  std::ifstream children{self};
  const std::vector<int> pids{std::istream_iterator<int>{children}, {}};
  BOOST_REQUIRE(pids.size() == 1);
  std::size_t open = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pids[0]) + "/fd"))
    ++open;
  BOOST_TEST(open == 4);
}

BOOST_AUTO_TEST_CASE(ten_thousand_calls_and_what_they_took) {
  auto host = script("return { 'rl:{' .. call.key .. '}' }",
                     "return { call.limit.capacity, call.limit.refill, call.cost, call.limit.period_us }",
                     "return { allowed = r[1] == 1, retry_after_ms = r[2], remaining = r[3] }");
  const std::vector<Call> calls(512, call_of("tenant"));
  const std::vector<Reply> replies(512, array({integer(0), integer(33), integer(17), integer(980)}));
  const auto start = std::chrono::steady_clock::now();
  std::size_t answered = 0;
  while (answered < 10'000) {
    BOOST_REQUIRE(host.arguments(calls).size() == calls.size());
    answered += host.answers(replies).size();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  BOOST_TEST_MESSAGE(static_cast<double>(answered) / took.count() << " calls a second, arguments and answers");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::harness
