// What the real command finds in limiters that are known to be wrong, and what becomes of its findings.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "proptests/suites/gate/desk.h"

namespace weir::suites {
namespace {

const std::string gateway = WEIR_SOURCE "/lua/contracts/gateway_client.lua";

/// The repro files; the pages beside them are for people.
std::vector<fs::path> counterexamples_in(const fs::path& directory) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator{directory})
    if (entry.path().extension() == ".json") found.push_back(entry.path());
  return found;
}

std::map<std::string, std::string> files_in(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const fs::path& file : counterexamples_in(directory)) {
    std::ifstream in{file, std::ios::binary};
    files[file.filename()] = {std::istreambuf_iterator<char>{in}, {}};
  }
  return files;
}

/// How many calls the counterexample of this name takes; 0 if there is none.
std::size_t calls_of(const Json& result, const std::string& promise, const std::string& kind) {
  for (const Json& found : line_of(result, promise).at("counterexamples"))
    if (found.at("kind") == kind) return found.at("calls");
  return 0;
}

BOOST_FIXTURE_TEST_SUITE(counterexample_suite, Desk)

BOOST_AUTO_TEST_CASE(the_published_bucket_is_found_out_in_four_calls_at_the_most_and_alike_from_any_seed) {
  std::map<std::string, std::string> first;
  for (const char* seed : {"1", "2"}) {
    const Ran ran = run({"check", published, "--seed", seed, "--out", seed, "--json", "result.json"});
    expect(ran, passed, {"fails as expected"});
    const Json result = Json::parse(std::ifstream{directory / "result.json"});
    const std::pair<const char*, const char*> wanted[]{
        {"clock", "over_admission"},             // refill credited twice when the clock swings
        {"bad_input", "negative_cost.minted"},   // a negative cost mints tokens
        {"bad_input", "zero_refill.no_expiry"},  // a rate of 0 leaves a key for ever
        {"retry", "told_to_retry_never"},        // a cost above the capacity is told to retry
        {"retry", "too_short"},                  // a retry time that is not enough
    };
    for (const auto& [promise, kind] : wanted) {
      const std::size_t calls = calls_of(result, promise, kind);
      BOOST_TEST(calls >= 1, promise << "." << kind << " must be found, seed " << seed);
      BOOST_TEST(calls <= 4, promise << "." << kind << " takes " << calls << " calls, seed " << seed);
    }
    // What both of them find, they find in the same form: the name ends in a hash of the text.
    std::map<std::string, std::string> form_of;
    for (const auto& [name, text] : files_in(directory / seed)) form_of[name.substr(0, name.rfind('-'))] = name;
    for (const auto& [bug, name] : form_of)
      if (first.contains(bug)) BOOST_TEST(first[bug] == name, "seed " << seed);
    if (first.empty()) first = form_of;
  }
}

BOOST_AUTO_TEST_CASE(the_incidents_client_leaks_with_two_clients_a_limit_of_one_and_four_steps) {
  std::map<std::string, std::string> first;
  for (const char* seed : {"1", "2", "3"}) {
    expect(run({"check", gateway, "--seed", seed, "--cases", "500", "--out", seed}), passed, {"fails as expected"});
    const auto files = files_in(directory / seed);
    BOOST_TEST_REQUIRE(files.size() == 1);
    const Json found = Json::parse(files.begin()->second);
    BOOST_TEST(found.at("kind") == "over_admission");
    BOOST_TEST(found.at("interleaving").at("clients") == 2);
    BOOST_TEST(found.at("interleaving").at("capacity") == 1);
    const std::string schedule = found.at("interleaving").at("schedule");
    BOOST_TEST(std::count(schedule.begin(), schedule.end(), ' ') < 4);
    if (first.empty()) first = files;
    BOOST_TEST((files == first), "seed " << seed);
  }
}

BOOST_AUTO_TEST_CASE(every_counterexample_fails_again_when_it_is_replayed) {
  for (const std::string& contract : {published, gateway}) {
    (void)run({"check", contract, "--cases", "6000"});
    const std::vector<fs::path> found = counterexamples_in(directory / "weir-out");
    BOOST_TEST(!found.empty());
    for (const fs::path& file : found) expect(run({"replay", file}), passed, {"FAIL", "as the file expects"});
    fs::remove_all(directory / "weir-out");
  }
}

/// Says no only to what can never pass.
const std::string generous = "if tonumber(ARGV[2]) > tonumber(ARGV[1]) then return {0, -1} end return {1, 0}";

/// Its smallest counterexample.
fs::path one_counterexample(const Desk& desk) {
  (void)desk.run({"check", desk.limiter(generous), "--cases", "2000"});
  for (const fs::path& file : counterexamples_in(desk.directory / "weir-out"))
    if (file.filename().string().find("bound-over-admission") != std::string::npos) return file;
  throw std::out_of_range("no counterexample");
}

BOOST_AUTO_TEST_CASE(what_was_mended_passes_and_the_file_says_what_it_expects) {
  const fs::path file = one_counterexample(*this);
  expect(run({"replay", file}), passed, {"fails, as the file expects"});
  // Mended: it grants the one token that is there, once.
  (void)limiter(
      "if redis.call('EXISTS', KEYS[1]) == 1 then return {0, 1000} end redis.call('SET', KEYS[1], 1, 'PX', "
      "2500) return {1, 0}");
  expect(run({"replay", file}), violation, {"does not happen any more", "set it to \"pass\""});

  Json text = Json::parse(std::ifstream{file});
  text["expect"] = "pass";
  const fs::path kept = write("kept.json", text.dump());
  expect(run({"replay", kept}), passed, {"passes, as the file expects"});
  (void)limiter(generous);
  expect(run({"replay", kept}), violation, {"fails", "the file expects \"pass\""});
}

BOOST_AUTO_TEST_CASE(another_contract_may_be_judged_by_the_same_counterexample) {
  expect(run({"replay", one_counterexample(*this), "--contract", shipped}), violation, {"does not happen any more"});
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_counterexample_is_told_where_it_is_wrong) {
  const fs::path file = one_counterexample(*this);
  const Json good = Json::parse(std::ifstream{file});
  const auto replayed = [&](const Json& text) { return run({"replay", write("wrong.json", text.dump())}); };
  const auto with = [&](const char* pointer, const Json& value) {
    Json wrong = good;
    wrong[Json::json_pointer{pointer}] = value;
    return replayed(wrong);
  };
  expect(run({"replay", "nowhere.json"}), usage, {"nowhere.json", "cannot be read"});
  expect(run({"replay", "."}), usage, {"directory"});
  expect(run({"replay", write("empty.json", "")}), usage, {"empty.json"});
  expect(run({"replay", write("cut.json", good.dump().substr(0, 40))}), usage, {"cut.json", "no JSON"});
  expect(run({"replay", write("list.json", "[1]")}), usage, {"list.json", "weir"});
  expect(with("/schema", 2), usage, {"schema", "find the counterexample again"});
  expect(with("/promise", "speed"), usage, {"promise"});
  expect(with("/expect", "maybe"), usage, {"expect", "\"fail\" or \"pass\""});
  expect(with("/scenario/calls", Json::array()), usage, {"scenario.calls"});
  expect(with("/scenario/calls/0/plan", 7), usage, {"scenario.calls[0].plan"});
  expect(with("/scenario/calls/0/tenant", 2), usage, {"scenario.calls[0].tenant"});
  expect(with("/scenario/calls/0/cost", 1.5), usage, {"scenario.calls[0].cost"});
  expect(with("/scenario/start_us", -1), usage, {"scenario.start_us"});
  expect(with("/contract", "gone.lua"), usage, {"gone.lua", "--contract"});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::suites
