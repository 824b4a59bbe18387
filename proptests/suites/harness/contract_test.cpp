#include "proptests/harness/contract.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "proptests/harness/contract_lines.h"
#include "proptests/harness/error.h"
#include "proptests/harness/lua_host.h"
#include "proptests/suites/harness/scratch.h"

namespace weir::harness {
namespace {

/// A contract that is right, a field a line, with some fields written otherwise. "" leaves one out.
std::string contract_with(const std::map<std::string, std::string>& changes) {
  const std::vector<std::pair<std::string, std::string>> fields{
      {"name", "'api limiter'"},
      {"promises", "'token_bucket'"},
      {"script", "'api.lua'"},
      {"keys", "function(call) return { call.key } end"},
      {"args", "function(call) return { call.cost } end"},
      {"reply", "function(r) return { allowed = r == 1 } end"},
  };
  std::string text = "return {\n";
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) text += "  " + name + " = " + value + ",\n";
  };
  for (const auto& [name, value] : fields) add(name, changes.contains(name) ? changes.at(name) : value);
  for (const auto& [name, value] : changes) {
    const auto known = [&, &field = name](const auto& entry) { return entry.first == field; };
    if (std::none_of(fields.begin(), fields.end(), known)) add(name, value);
  }
  return text + "}\n";
}

struct Folder : Scratch {
  Folder() { write("api.lua", "return 1"); }

  Contract load(const std::string& text) const { return LuaHost(write("c.lua", text)).contract(); }

  std::string error_of(const std::filesystem::path& file) const {
    try {
      LuaHost host{file};
      return "no error";
    } catch (const ContractError& error) {
      return without_directory(error.what());
    }
  }
  std::string error_of_text(const std::string& text) const { return error_of(write("c.lua", text)); }
  std::string error_with(const std::string& field, const std::string& value) const {
    return error_of_text(contract_with({{field, value}}));
  }
};

BOOST_FIXTURE_TEST_SUITE(contract, Folder)

BOOST_AUTO_TEST_CASE(every_field_of_a_contract_is_read) {
  const Contract contract = load(R"(return {
  name = "api limiter",  promises = "fixed_window",  resolution = "s", clock = "ms",
  script = "api.lua", state = "weir",
  keys = function(call) return { "rl:{" .. call.key .. "}" } end,
  args = function(call)
    return { call.limit.capacity, call.limit.refill, call.cost }
  end,
  reply = function(r) return { allowed = r[1] == 1 } end,
  limits = { capacity = {1, 2^51}, refill = 7, period = {"250us", "1d"},
             cost = { 2, 3 } },
  expect = { bound = "fail",
             no_trace = "fail" },
})");
  BOOST_TEST(contract.name == "api limiter");
  BOOST_TEST((contract.promises == Contract::Promises::fixed_window));
  BOOST_TEST((contract.resolution == Contract::Unit::seconds));
  BOOST_TEST((contract.clock == Contract::Unit::milliseconds));
  BOOST_TEST((contract.script == std::filesystem::path{"api.lua"}));
  BOOST_TEST(contract.script_text == "return 1");
  BOOST_TEST(contract.has_state);
  BOOST_TEST((contract.capacity == Range{1, std::int64_t{1} << 51}));
  BOOST_TEST((contract.refill == Range{7, 7}));
  BOOST_TEST((contract.period_us == Range{250, 86'400'000'000}));
  BOOST_TEST((contract.cost == Range{2, 3}));
  const std::map<std::string, std::string> expect{{"bound", "fail"}, {"no_trace", "fail"}};
  BOOST_TEST((contract.expect == expect));
  const std::map<std::string, int> lines{{"", 1},
                                         {"name", 2},
                                         {"promises", 2},
                                         {"resolution", 2},
                                         {"clock", 2},
                                         {"script", 3},
                                         {"state", 3},
                                         {"keys", 4},
                                         {"args", 5},
                                         {"reply", 8},
                                         {"limits", 9},
                                         {"limits.capacity", 9},
                                         {"expect", 11},
                                         {"limits.refill", 9},
                                         {"limits.period", 9},
                                         {"limits.cost", 10},
                                         {"expect.bound", 11},
                                         {"expect.no_trace", 12}};
  BOOST_TEST((contract.lines == lines));
}

BOOST_AUTO_TEST_CASE(what_a_contract_leaves_out_has_its_default) {
  const Contract contract = load(contract_with({}));
  BOOST_TEST((contract.resolution == Contract::Unit::milliseconds));
  BOOST_TEST((contract.clock == Contract::Unit::microseconds));
  BOOST_TEST(!contract.has_state);
  BOOST_TEST((contract.capacity == Range{1, 1000}));
  BOOST_TEST((contract.period_us == Range{1'000'000, 1'000'000}));
  BOOST_TEST(contract.expect.empty());
}

BOOST_AUTO_TEST_CASE(a_period_is_read_in_every_unit) {
  const std::vector<std::pair<std::string, std::int64_t>> rows{
      {"'1us'", 1},           {"'100ms'", 100'000},        {"'1s'", 1'000'000},    {"'1m'", 60'000'000},
      {"'1h'", 3600'000'000}, {"'30d'", 2592'000'000'000}, {"1500000", 1'500'000},
  };
  for (const auto& [text, micros] : rows)
    BOOST_TEST((load(contract_with({{"limits", "{ period = " + text + " }"}})).period_us == Range{micros, micros}),
               text);
}

BOOST_AUTO_TEST_CASE(a_script_is_found_beside_its_contract_and_not_where_we_are) {
  std::filesystem::create_directory(directory / "sub");
  write("sub/deep.lua", "return 2");
  BOOST_TEST(load(contract_with({{"script", "'sub/deep.lua'"}})).script_text == "return 2");
}

BOOST_AUTO_TEST_CASE(a_wrong_field_is_named_with_its_line_and_what_was_expected) {
  struct Row {
    const char* field;
    const char* value;
    const char* message;
  };
  const std::vector<Row> rows{
      {"name", "", "c.lua:1: name: is missing; it must be a string that names the limiter in reports"},
      {"name", "''", "c.lua:2: name: is \"\"; it must be a string that is not empty"},
      {"name", "7", "c.lua:2: name: is 7; it must be a string that is not empty"},
      {"promises", "", "c.lua:1: promises: is missing; it must be \"token_bucket\" or \"fixed_window\""},
      {"promises", "'token_buket'",
       "c.lua:3: promises: is \"token_buket\"; it must be \"token_bucket\" or \"fixed_window\" (the nearest is "
       "\"token_bucket\")"},
      {"promises", "{}", "c.lua:3: promises: is a table; it must be \"token_bucket\" or \"fixed_window\""},
      {"resolution", "'sec'",
       "c.lua:8: resolution: is \"sec\"; it must be \"s\", \"ms\" or \"us\" (the nearest is \"s\")"},
      {"clock", "true", "c.lua:8: clock: is true; it must be \"s\", \"ms\" or \"us\""},
      {"state", "'mine'", "c.lua:8: state: is \"mine\"; it must be \"weir\" (the nearest is \"weir\")"},
      {"resolutoin", "'ms'",
       "c.lua:8: resolutoin: is no field; the nearest is resolution (known are name, promises, resolution, clock, "
       "script, take, keys, args, reply, state, limits, expect)"},
      {"[1]", "'ms'",
       "c.lua:1: 1: is no field; the nearest is name (known are name, promises, resolution, clock, script, take, keys, "
       "args, reply, state, limits, expect)"},
      {"script", "",
       "c.lua:1: script: is missing, and so is take; a limiter is a script (the path of a Lua script) or take (a "
       "function)"},
      {"take", "function() end",
       "c.lua:8: take: stands beside script; a limiter is one of them: script (an EVALSHA) or take (a client program)"},
      {"script", "7", "c.lua:4: script: is 7; it must be the path of a Lua script, relative to the contract"},
      {"script", "'none.lua'",
       "c.lua:4: script: is \"none.lua\", which is none.lua: there is no such file; it must be the path of a Lua "
       "script, relative to the contract, at most 1 MiB long"},
      {"script", "'.'",
       "c.lua:4: script: is \".\", which is .: it is a directory; it must be the path of a Lua script, relative to the "
       "contract, at most 1 MiB long"},
      {"keys", "", "c.lua:1: keys: is missing; it must be a function like function(call) return { call.key } end"},
      {"keys", "'k'", "c.lua:5: keys: is \"k\"; it must be a function like function(call) return { call.key } end"},
      {"args", "{}",
       "c.lua:6: args: is a table; it must be a function like function(call) return { call.limit.capacity, call.cost "
       "} end"},
      {"reply", "false",
       "c.lua:7: reply: is false; it must be a function like function(r) return { allowed = r[1] == 1 } end"},
      {"limits", "3", "c.lua:8: limits: is 3; it must be a table like { capacity = {1, 1000}, period = \"1s\" }"},
      {"limits", "{ burst = 3 }",
       "c.lua:8: limits.burst: is no part of limits; the nearest is cost (known are capacity, refill, period, cost)"},
      {"limits", "{ capacity = 0 }",
       "c.lua:8: limits.capacity: is 0; it must be a whole number from 1 to 2^51 (2251799813685248)"},
      {"limits", "{ capacity = 1.5 }",
       "c.lua:8: limits.capacity: is 1.5; it must be a whole number from 1 to 2^51 (2251799813685248)"},
      {"limits", "{ capacity = 0/0 }",
       "c.lua:8: limits.capacity: is nan; it must be a whole number from 1 to 2^51 (2251799813685248)"},
      {"limits", "{ refill = 2^51 + 1 }",
       "c.lua:8: limits.refill: is 2251799813685249; it must be a whole number from 1 to 2^51 (2251799813685248)"},
      {"limits", "{ cost = '7' }",
       "c.lua:8: limits.cost: is \"7\"; it must be a whole number from 0 to 2^51 (2251799813685248)"},
      {"limits", "{ refill = {10, 1} }",
       "c.lua:8: limits.refill: is {10, 1}, which is empty; it must be {least, most}"},
      {"limits", "{ refill = {10} }", "c.lua:8: limits.refill: is a table of 1; it must be {least, most}"},
      {"limits", "{ refill = {1, 2, 3} }", "c.lua:8: limits.refill: is a table of 3; it must be {least, most}"},
      {"limits", "{ period = '1w' }",
       "c.lua:8: limits.period: is \"1w\"; it must be a whole number from 1 to 2^51 (2251799813685248) of "
       "microseconds, "
       "or like \"1s\", \"100ms\", \"250us\", \"1m\", \"1h\" or \"1d\""},
      {"limits", "{ period = 's' }",
       "c.lua:8: limits.period: is \"s\"; it must be a whole number from 1 to 2^51 (2251799813685248) of microseconds, "
       "or like \"1s\", \"100ms\", \"250us\", \"1m\", \"1h\" or \"1d\""},
      {"expect", "'fail'", "c.lua:8: expect: is \"fail\"; it must be a table like { bound = \"fail\" }"},
      {"expect", "{ bund = 'fail' }",
       "c.lua:8: expect.bund: is no promise; the nearest is bound (known are bound, exact, retry, remaining, lifetime, "
       "no_trace, bad_input, clock, plan, tenants, concurrency)"},
      {"expect", "{ exact = 'pass' }",
       "c.lua:8: expect.exact: is \"pass\"; it must be \"fail\" (leave out what is to pass)"},
  };
  for (const Row& row : rows) BOOST_TEST(error_with(row.field, row.value) == row.message);
}

BOOST_AUTO_TEST_CASE(a_client_program_has_no_keys_args_or_reply) {
  BOOST_TEST(error_of_text("return { name = 'n', promises = 'token_bucket',\n take = function() end,\n reply = 3 }") ==
             "c.lua:3: reply: stands beside take; it belongs to a script: take sends its own commands and returns the "
             "answer");
  BOOST_TEST(
      error_of_text("return { name = 'n', promises = 'token_bucket',\n take = 'f' }") ==
      "c.lua:2: take: is \"f\"; it must be a function like function(redis, call) ... return { allowed = ... } end");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_contract_is_refused_by_name) {
  const std::string is = "; a contract is a Lua file of at most 1 MiB that returns a table";
  BOOST_TEST(error_of(directory / "none.lua") == "none.lua: there is no such file" + is);
  BOOST_TEST(error_of(directory / ".") == ".: it is a directory" + is);
  BOOST_TEST(error_of("/dev/null") == "/dev/null: it is not a regular file" + is);
  BOOST_TEST(error_of_text("") == "c.lua: it is empty" + is);
  BOOST_TEST(error_of_text(" \n\t\n") == "c.lua: it is empty" + is);
  BOOST_TEST(error_of_text(std::string((1 << 20) + 1, ' ')) == "c.lua: it has 1048577 bytes" + is);
  const std::string returns = "; it must return a table: return { name = ..., promises = ... }";
  BOOST_TEST(error_of_text("local x = 1") == "c.lua: returned nothing" + returns);
  BOOST_TEST(error_of_text("return 'x'") == "c.lua: returned \"x\"" + returns);
}

BOOST_AUTO_TEST_CASE(an_error_in_the_lua_is_told_with_its_line) {
  const std::string is = "; a contract is a Lua file that returns a table";
  BOOST_TEST(error_of_text("return {\n  name = 'x'\n  promises = 'y'\n}") ==
             "c.lua:3: '}' expected (to close '{' at line 1) near 'promises'" + is);
  BOOST_TEST(error_of_text("\nlocal x = nil + 1") == "c.lua:2: attempt to perform arithmetic on a nil value" + is);
  BOOST_TEST(error_of_text("error({})") == "c.lua: an error that is a table, not a message" + is);
  BOOST_TEST(error_of_text("error('told', 0)") == "c.lua: told" + is);
  BOOST_TEST(error_of_text("\x1bLJ\x02\n") == "c.lua: attempt to load chunk with wrong mode" + is);
}

BOOST_AUTO_TEST_CASE(a_file_that_does_not_end_or_that_eats_all_memory_is_refused) {
  const auto error = [&](const std::string& text) {
    try {
      LuaHost host{write("c.lua", text), std::chrono::milliseconds{300}};
      return std::string{"no error"};
    } catch (const ContractError& refused) {
      return without_directory(refused.what());
    }
  };
  BOOST_TEST(error("while true do end") ==
             "c.lua: the file did not end within 300 ms; a contract returns a table and does nothing else");
  BOOST_TEST(
      error("local t = string.rep('x', 2^30)") ==
      "c.lua: not enough memory; a contract's Lua may use 256 MiB; a contract is a Lua file that returns a table");
}

BOOST_AUTO_TEST_CASE(a_table_that_contains_itself_is_refused) {
  BOOST_TEST(
      error_of_text("local t = {} t.limits = t return t") ==
      "c.lua: the contract's table is nested deeper than 8 tables; a contract is a Lua file that returns a table");
}

BOOST_AUTO_TEST_CASE(field_lines_are_not_misled_by_strings_comments_and_bodies) {
  const auto lines = field_lines(R"lua(-- { name = 1 }
local helper = { name = "not this one" }
--[[ return {
  name = 2 ]]
return {
  name = "a = { b", script = [==[ keys = 1, ]==],
  keys = function(call)
    local args, reply = 1, 2
    if call.key == "x" then args = { cost = 1 } end
    for i = 1, 2 do repeat reply = i until true end
    return { limit = 1 }
  end,
  args = 1, ["limits"] = 2;
  reply = 3 })lua");
  const std::map<std::string, int> expected{{"", 5},     {"name", 6},  {"script", 6},
                                            {"keys", 7}, {"args", 13}, {"reply", 14}};
  BOOST_TEST((lines == expected));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::harness
