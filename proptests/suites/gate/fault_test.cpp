// Everything that can be wrong around a limiter, told to the real command: a clear message, the right
// exit code, and nothing left behind.

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <string>
#include <thread>

#include "proptests/suites/gate/desk.h"

namespace weir::suites {
namespace {

BOOST_FIXTURE_TEST_SUITE(fault_suite, Desk)

BOOST_AUTO_TEST_CASE(without_a_redis_server_it_says_which_package_has_one) {
  expect(run({"check", shipped}, {{"PATH", "/nowhere"}, {"WEIR_REDIS_SERVER", {}}}), environment,
         {"no redis-server", "redis-tools", "WEIR_REDIS_SERVER"});
  expect(run({"check", shipped}, {{"WEIR_REDIS_SERVER", "/nowhere/redis-server"}}), environment,
         {"WEIR_REDIS_SERVER=/nowhere/redis-server", "no such file"});
}

BOOST_AUTO_TEST_CASE(a_server_that_is_too_old_or_none_is_named) {
  const std::string old = program("old", "echo Redis server v=6.2.14 sha=0");
  expect(run({"check", shipped}, {{"WEIR_REDIS_SERVER", old}}), environment, {"6.2.14", "7.0.0 or later"});
  const std::string other = program("other", "echo hello");
  expect(run({"check", shipped}, {{"WEIR_REDIS_SERVER", other}}), environment, {"is not a redis-server", "hello"});
}

BOOST_AUTO_TEST_CASE(a_server_that_does_not_obey_the_clock_is_no_judge) {
  const std::string server = program("without-clock",
                                     "unset LD_PRELOAD\n"
                                     "real=$(command -v redis-server || command -v redis-check-rdb)\n"
                                     "ln -sf \"$real\" \"$(dirname \"$0\")/redis-server\"\n"
                                     "exec \"$(dirname \"$0\")/redis-server\" \"$@\"");
  expect(run({"check", shipped}, {{"WEIR_REDIS_SERVER", server}}), environment, {"clock"});
}

BOOST_AUTO_TEST_CASE(a_contract_that_cannot_be_read_or_is_wrong_is_named_with_its_field) {
  expect(run({"check", "nowhere.lua"}), usage, {"nowhere.lua"});
  expect(run({"check", "."}), usage, {"."});
  const auto wrong = [&](const char* text) { return run({"check", write("wrong.lua", text)}); };
  expect(wrong("return {"), usage, {"wrong.lua", "expected"});
  expect(wrong("return 7"), usage, {"wrong.lua", "table"});
  expect(wrong("return { name = 'n' }"), usage, {"wrong.lua", "promises"});
  expect(wrong("return { name = 'n', promises = 'token_bucket', script = 'gone.lua', keys = print, reply = print }"),
         usage, {"gone.lua"});
  expect(wrong("return { name = 'n', promises = 'token_bucket', speed = 3, take = print }"), usage,
         {"wrong.lua", "speed"});
  expect(wrong("while true do end"), usage, {"wrong.lua"});
}

BOOST_AUTO_TEST_CASE(a_script_that_redis_does_not_take_is_shown_with_what_redis_says) {
  expect(run({"check", limiter("return {1, 0")}), usage,
         {"limiter.lua", "Redis does not take the script", "user_script:1"});
}

BOOST_AUTO_TEST_CASE(a_script_that_loops_for_ever_fails_and_is_stopped) {
  const Ran ran = run({"check", limiter("while true do end"), "--cases", "20", "--budget", "5s", "--json", "r.json"});
  expect(ran, violation, {"no reply", "the call did not end"});
}

BOOST_AUTO_TEST_CASE(a_script_that_loops_after_a_write_fails_too) {
  const Ran ran =
      run({"check", limiter("redis.call('SET', KEYS[1], 1) while true do end"), "--cases", "20", "--budget", "5s"});
  expect(ran, violation, {"no reply", "the call did not end"});
}

BOOST_AUTO_TEST_CASE(a_client_program_that_never_answers_fails) {
  const std::string contract = write("contract.lua",
                                     "return { name = 'c', promises = 'token_bucket', take = function(redis, call)\n"
                                     "  while true do redis.call('GET', call.key) end\nend,\n"
                                     "limits = { capacity = { 1, 5 }, refill = { 1, 5 }, period = '1s' } }\n");
  expect(run({"check", contract, "--cases", "20", "--budget", "5s"}), violation, {"no reply"});
}

BOOST_AUTO_TEST_CASE(a_reply_of_the_wrong_shape_is_shown) {
  expect(run({"check", limiter("return 7"), "--cases", "200"}), violation, {"malformed reply", "7"});
  expect(run({"check", limiter("return redis.error_reply('ERR no')"), "--cases", "200"}), violation,
         {"error reply", "ERR no"});
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_full_is_told_and_a_device_stays_a_device) {
  expect(run({"check", shipped, "--cases", "500", "--json", "/dev/full"}), environment,
         {"/dev/full: cannot be written", "No space left on device"});
  struct stat status {};
  BOOST_TEST_REQUIRE(::stat("/dev/full", &status) == 0);
  BOOST_TEST(S_ISCHR(status.st_mode));
  expect(weir({.words = {"check", shipped, "--cases", "500"},
               .directory = directory,
               .environment = {},
               .output = "/dev/full",
               .meanwhile = {}}),
         environment, {"the output cannot be written"});
  write("file", "");
  expect(run({"check", published, "--cases", "500", "--out", "file/out"}), environment, {"file/out", "directory"});
}

BOOST_AUTO_TEST_CASE(a_directory_for_temporary_files_that_cannot_be_written_is_named) {
  expect(run({"check", shipped}, {{"TMPDIR", "/dev/full"}}), environment, {"TMPDIR=/dev/full"});
}

BOOST_AUTO_TEST_CASE(an_interrupt_ends_it_with_what_it_has_so_far) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Ran ran = weir({.words = {"check", shipped, "--cases", "1000000000", "--json", "result.json"},
                          .directory = directory,
                          .environment = {},
                          .output = {},
                          .meanwhile = [&](int pid) {
                            // The server's directory is there: the run is under way.
                            while (fs::is_empty(directory / "tmp")) std::this_thread::yield();
                            ::kill(pid, signal);
                          }});
    expect(ran, inconclusive, {"cut short: interrupted", "inconclusive"});
    BOOST_TEST(Json::parse(std::ifstream{directory / "result.json"}).at("exit_code") == inconclusive);
  }
}

BOOST_AUTO_TEST_CASE(killed_outright_it_still_leaves_nothing_behind) {
  const Ran ran = weir({.words = {"check", shipped, "--cases", "1000000000"},
                        .directory = directory,
                        .environment = {},
                        .output = {},
                        .meanwhile = [&](int pid) {
                          while (fs::is_empty(directory / "tmp")) std::this_thread::yield();
                          ::kill(pid, SIGKILL);
                        }});
  expect(ran, 128 + SIGKILL, {});
}

BOOST_AUTO_TEST_CASE(what_it_does_not_know_is_a_mistake_and_not_ignored) {
  expect(run({}), usage, {"subcommand"});
  expect(run({"check"}), usage, {"contracts"});
  expect(run({"check", shipped, "--sed", "1"}), usage, {"--sed"});
  expect(run({"check", shipped, "--seed", "one"}), usage, {"--seed"});
  expect(run({"check", shipped, "--seed", "-1"}), usage, {"--seed"});
  expect(run({"check", shipped, "--cases", "0"}), usage, {"--cases"});
  expect(run({"check", shipped, "--budget", "30"}), usage, {"--budget", "30s"});
  expect(run({"check", shipped, "--budget", "-1s"}), usage, {"--budget"});
  expect(run({"judge", shipped}), usage, {"subcommand"});
  expect(run({"peek", "key", "--port", "0"}), usage, {"--port"});
}

BOOST_AUTO_TEST_CASE(help_and_version_are_no_mistakes) {
  expect(run({"--help"}), passed, {"weir check", "Exit codes"});
  expect(run({"check", "--help"}), passed, {"--seed", "--cases", "--budget", "--json", "--junit"});
  expect(run({"--version"}), passed, {});
}

BOOST_AUTO_TEST_CASE(a_budget_is_a_wall_and_what_stands_before_it_is_reported) {
  const Ran passing = run({"check", shipped, "--cases", "1000000000", "--budget", "5s", "--json", "result.json"});
  expect(passing, inconclusive, {"cut short: the budget ran out"});
  const Json result = Json::parse(std::ifstream{directory / "result.json"});
  BOOST_TEST(result.at("limiters").at(0).at("cut_short") == "the budget ran out");
  BOOST_TEST(result.at("limiters").at(0).at("decisions") > 0);
  const Ran failing = run({"check", limiter("return {1, 0}"), "--cases", "1000000000", "--budget", "5s"});
  expect(failing, violation, {"over admission"});
}

BOOST_AUTO_TEST_CASE(the_json_says_all_that_the_card_says) {
  const Ran ran = run({"check", shipped, "--cases", "3000", "--seed", "5", "--json", "-"});
  const Json result = Json::parse(ran.out);  // and nothing else
  BOOST_TEST(result.at("schema") == 1);
  BOOST_TEST(result.at("seed") == 5);
  BOOST_TEST(result.at("cases") == 3'000);
  BOOST_TEST(result.at("exit_code") == ran.code);
  BOOST_TEST(result.at("peak_memory_kb") > 0);
  const Json& limiter = result.at("limiters").at(0);
  BOOST_TEST(limiter.at("name") == "token bucket");
  BOOST_TEST(limiter.at("decisions") >= 3'000);
  BOOST_TEST(limiter.at("promises").size() == 11);
  for (const char* count : {"calls", "allowed", "denied", "never", "peeks", "bad_input", "clock_back", "plan_changed",
                            "expired", "emptied", "at_boundary", "before_boundary"})
    BOOST_TEST(limiter.at("coverage").at(count) > 0, count);
  BOOST_TEST(line_of(result, "exact").at("status") == "pass");
}

BOOST_AUTO_TEST_CASE(the_junit_report_is_well_formed_and_points_at_the_users_files) {
  // A name that XML would trip over.
  const Ran ran =
      run({"check", limiter("return {1, 0}", "  notes = nil,\n"), "--cases", "2000", "--junit", "report.xml"});
  expect(ran, violation, {"over admission"});
  boost::property_tree::ptree report;
  boost::property_tree::read_xml((directory / "report.xml").string(), report);
  const auto& suite = report.get_child("testsuites.testsuite");
  BOOST_TEST(suite.get<std::string>("<xmlattr>.name") == "limiter");
  std::size_t cases = 0;
  std::size_t failures = 0;
  for (const auto& [tag, test] : suite) {
    if (tag != "testcase") continue;
    ++cases;
    if (!test.get_child_optional("failure")) continue;
    ++failures;
    BOOST_TEST(fs::path{test.get<std::string>("<xmlattr>.file")}.filename() == "contract.lua");
    BOOST_TEST(test.get<int>("<xmlattr>.line") == 3);  // of `script`
    BOOST_TEST(!test.get<std::string>("failure").empty());
  }
  BOOST_TEST(cases == 11);
  BOOST_TEST(failures == suite.get<std::size_t>("<xmlattr>.failures"));
  BOOST_TEST(failures > 0);
}

BOOST_AUTO_TEST_CASE(an_unexpected_pass_is_a_violation_and_an_expected_failure_is_none) {
  const std::string contract = WEIR_SOURCE "/lua/contracts/gateway_client.lua";
  expect(run({"check", contract, "--cases", "2000"}), passed, {"(expected)", "fails as expected"});
  const Ran surprised =
      run({"check", limiter("return {1, 0}", "  expect = { tenants = 'fail' },\n"), "--cases", "2000"});
  expect(surprised, violation, {"expected to fail, and did not"});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::suites
