#include "ci/gate/picture.h"

#include <array>
#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "ci/gate/counterexample.h"
#include "ci/gate/report.h"
#include "ci/gate/repro.h"
#include "ci/gate/svg.h"
#include "proptests/suites/harness/scratch.h"

namespace weir::gate {
namespace {

const std::string source = WEIR_SOURCE;
constexpr Instant start{Micros{1'767'225'600'000'000}};

/// A counterexample and the contract that it breaks.
struct Case {
  std::string name;
  Counterexample found;
  harness::Contract contract;

  [[nodiscard]] std::string page() const { return picture_page(found, contract, "7.0.15", "weir-out/it.json"); }
  [[nodiscard]] std::string svg() const { return picture_svg(found, contract); }
};

/// The incident: two clients read the counter before either writes.
const Case& incident() {
  static const Case made = [] {
    harness::LuaHost host{source + "/lua/contracts/gateway_client.lua"};
    harness::Server server;
    const Interleaving order{.start = start,
                             .plan = {1, 1, 1'000'000},
                             .clients = 2,
                             .attempts = 1,
                             .schedule = *harness::parse_schedule("A B B A")};
    return Case{"incident", interleaving_counterexample(server, host, order), host.contract()};
  }();
  return made;
}

/// Calls on the real limiter as published, judged.
Case published(std::string name, const model::Plan& plan, const std::vector<model::TimedCall>& calls,
               const std::string& failure) {
  harness::LuaHost host{source + "/lua/contracts/token_bucket_as_published.lua"};
  harness::Server server;
  Runner runner{server, host};
  const model::Scenario scenario{.start = start, .plans = {plan}, .calls = calls};
  Case made{std::move(name), {}, host.contract()};
  made.found.history = runner.run(std::span{&scenario, 1}).front();
  made.found.verdict = model::judge(made.found.history, promised_by(host.contract()), true);
  const auto& failures = made.found.verdict.failures;
  const auto wanted =
      std::find_if(failures.begin(), failures.end(), [&](const model::Failure& one) { return one.name() == failure; });
  BOOST_REQUIRE_MESSAGE(wanted != failures.end(), failure << " must be among the failures");
  made.found.failure = *wanted;
  return made;
}

model::TimedCall after(std::int64_t advance_us, model::Quantity cost = 1, int tenant = 0) {
  return {.advance_us = advance_us, .tenant = tenant, .plan = 0, .cost = std::move(cost)};
}

const Case& paid_twice() {
  static const Case made =
      published("paid twice", {1, 1, 1'000'000}, {after(0), after(-1'000), after(1'000'000)}, "bound.over_admission");
  return made;
}

const Case& never_told() {
  static const Case made = published("never told", {1, 1, 1'000'000}, {after(0, 2)}, "retry.told_to_retry_never");
  return made;
}

const Case& long_history() {
  static const Case made = [] {
    std::vector<model::TimedCall> calls;
    for (int call = 0; call < 80; ++call) calls.push_back(after(call % 3 * 250'000, 1, call % 2));
    calls.push_back(after(0, 1'001));
    return published("long", {1'000, 3, 1'000'000}, calls, "retry.told_to_retry_never");
  }();
  return made;
}

/// Everything that comes from outside is as hostile as it can be.
Case hostile() {
  Case made = paid_twice();
  made.name = "hostile";
  const std::string text = "</title><script>alert('&amp;\"')</script>\x01\xff\xed\xa0\x80]]> http://evil \xc3\xa9";
  made.contract.name = text;
  made.contract.file = text;
  made.found.failure.why = text;
  made.found.history.seen[1].kind = model::Observation::Kind::error;
  made.found.history.seen[1].text = text;
  made.found.history.scenario.calls[0].cost = model::Quantity{text};
  return made;
}

std::vector<Case> all_cases() {
  return {incident(), paid_twice(), never_told(), long_history(), hostile()};
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

void must_hold(const std::string& text, const std::string& part) {
  BOOST_TEST(text.find(part) != std::string::npos, "\"" << part << "\" must be in it");
}

/// What a program prints, and how it ended.
struct Ran {
  int code;
  std::string out;
};
Ran run(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, ""};
  std::string out;
  std::array<char, 4096> part{};
  for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;) out.append(part.data(), got);
  return {::pclose(pipe), std::move(out)};
}

bool installed(const std::string& program) {
  return run("command -v " + program + " 2>/dev/null").code == 0;
}

boost::test_tools::assertion_result a_browser_is_there(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result there{installed("chromium")};
  if (!there) there.message() << "no chromium is installed (apt-get install chromium), so nothing is looked at";
  return there;
}

/// Renders a file as a reader's browser would, without network and without a profile.
struct Browser {
  harness::Scratch scratch;

  Ran open(const std::filesystem::path& file, const std::string& options) const {
    return run(
        "timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update --disable-sync --user-data-dir=" +
        (scratch.directory / "profile").string() + " " + options + " file://" + file.string() + " 2>/dev/null");
  }

  [[nodiscard]] std::uintmax_t screenshot_bytes(const std::filesystem::path& page, const std::string& options) const {
    const auto shot = scratch.directory / "shot.png";
    std::filesystem::remove(shot);
    open(page, "--hide-scrollbars --window-size=1200,1000 --screenshot=" + shot.string() + " " + options);
    return std::filesystem::exists(shot) ? std::filesystem::file_size(shot) : 0;
  }
};

BOOST_AUTO_TEST_SUITE(picture_suite)

BOOST_AUTO_TEST_CASE(a_page_is_well_formed_small_and_needs_nothing_from_elsewhere) {
  for (const Case& one : all_cases()) {
    BOOST_TEST_CONTEXT(one.name) {
      for (const std::string& text : {one.page(), one.svg()}) {
        std::istringstream in{text};
        boost::property_tree::ptree tree;
        BOOST_CHECK_NO_THROW(boost::property_tree::read_xml(in, tree));
        BOOST_TEST(text.size() < 300'000U);
        for (const char* banned : {"<script", "<link", "<img", "<iframe", "@import", "href=\"http", "src=", "url(h"})
          BOOST_TEST(text.find(banned) == std::string::npos, banned << " must not be in it");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_strict_reader_of_xml_takes_it_too) {
  if (!installed("xmllint")) {
    BOOST_TEST_MESSAGE("no xmllint is installed (apt-get install libxml2-utils), so it is not asked");
    return;
  }
  const harness::Scratch scratch;
  for (const Case& one : all_cases()) {
    const Ran ran = run("xmllint --noout " + scratch.write("page.html", one.page()).string() + " " +
                        scratch.write("picture.svg", one.svg()).string() + " 2>&1");
    BOOST_TEST(ran.code == 0, one.name << ":\n" << ran.out);
  }
}

BOOST_AUTO_TEST_CASE(a_page_says_what_the_terminal_says_and_how_to_see_it_again) {
  for (const Case& one : all_cases()) {
    BOOST_TEST_CONTEXT(one.name) {
      const std::string page = one.page();
      must_hold(page, escaped(counterexample_text(one.found, one.contract, {})));
      must_hold(page, "weir replay weir-out/it.json");
      must_hold(page, "Redis 7.0.15");
      must_hold(page, escaped(promise_text(one.found.failure.promise)));
    }
  }
}

BOOST_AUTO_TEST_CASE(each_call_or_step_has_an_anchor_and_a_link_to_it) {
  const std::string steps = incident().page();
  for (const char* anchor : {"id=\"s1\"", "id=\"s4\"", "href=\"#s1\"", "href=\"#s4\""}) must_hold(steps, anchor);
  BOOST_TEST(count_of(steps, "<g id=\"s") == 4U);
  BOOST_TEST(count_of(long_history().page(), "<g id=\"s") == 81U);
}

BOOST_AUTO_TEST_CASE(the_tokens_are_those_of_the_model_and_the_gap_is_what_the_limiter_gave_beyond) {
  // By hand: empty at 0; a clock 1 ms back takes 0.001 back; 1 s later there is 0.999, and 1 is given.
  const std::string page = paid_twice().page();
  for (const char* value : {">1<", ">-0.001<", ">0.999<", ">1 too many<", ">back 1 ms<", ">+1 s<", ">here they part<"})
    must_hold(page, value);
  BOOST_TEST(count_of(page, "class=\"gap\"") == 1U);
}

BOOST_AUTO_TEST_CASE(where_no_token_is_given_too_many_nothing_is_shaded) {
  BOOST_TEST(count_of(never_told().page(), "class=\"gap\"") == 0U);
}

BOOST_AUTO_TEST_CASE(the_incident_shows_who_was_admitted_beyond_the_limit_and_what_would_have_passed) {
  const std::string page = incident().page();
  for (const char* value : {">client A<", ">client B<", ">Redis<", ">clock<", ">ADMITTED<", ">entitled: 1<",
                            ">admitted: 2<", "the pivot: run after step 3, it passes (B B A)"})
    must_hold(page, value);
  BOOST_TEST(count_of(page, "class=\"gap\"") == 1U);
}

BOOST_AUTO_TEST_CASE(the_picture_in_the_readme_is_what_weir_draws) {
  const std::string committed = read_whole(source + "/ci/pictures/incident.svg");
  BOOST_TEST((incident().svg() == committed),
             "it is drawn anew by: weir replay weir-out/gateway_client-concurrency-over-admission-*.json "
             "--svg ci/pictures/incident.svg");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_text_cannot_break_a_picture) {
  BOOST_TEST(escaped("<a href=\"x\">&") == "&lt;a href=&quot;x&quot;&gt;&amp;");
  BOOST_TEST(escaped(std::string{"\0\x1b\x7f\t\n", 5}) == "??\x7f\t\n");
  BOOST_TEST(escaped("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") == "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  BOOST_TEST(escaped("\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xef\xbf\xbf \xc3") == "?? ??? ???? ??? ?");
}

BOOST_AUTO_TEST_CASE(lines_break_at_spaces_and_say_what_they_leave_out) {
  BOOST_TEST(wrapped("one two three", 7, 3) == (std::vector<std::string>{"one two", "three"}),
             boost::test_tools::per_element());
  BOOST_TEST(wrapped("abcdefghij", 4, 9) == (std::vector<std::string>{"abcd", "efgh", "ij"}),
             boost::test_tools::per_element());
  BOOST_TEST(wrapped("one two three", 8, 1) == (std::vector<std::string>{"one t..."}),
             boost::test_tools::per_element());
  BOOST_TEST(wrapped("", 8, 1).empty());
}

BOOST_AUTO_TEST_CASE(a_browser_shows_a_page_dark_and_light, *boost::unit_test::precondition(a_browser_is_there)) {
  const Browser browser;
  const auto empty = browser.scratch.write("empty.html", "<!DOCTYPE html><title>empty</title>");
  const auto blank = browser.screenshot_bytes(empty, "");
  BOOST_REQUIRE(blank > 0U);
  for (const Case& one : {incident(), paid_twice()}) {
    const auto page = browser.scratch.write("page.html", one.page());
    BOOST_TEST(browser.screenshot_bytes(page, "") > 5 * blank);
    BOOST_TEST(browser.screenshot_bytes(page, "--blink-settings=preferredColorScheme=0") > 5 * blank);
  }
}

BOOST_AUTO_TEST_CASE(no_words_cover_other_words_or_leave_the_picture,
                     *boost::unit_test::precondition(a_browser_is_there)) {
  const Browser browser;
  const std::string look = R"(<p id="seen"></p><script>
const svg = document.querySelector('svg'), frame = svg.getBoundingClientRect(), seen = [];
const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
boxes.forEach(([text, a], i) => {
  if (a.left < frame.left || a.right > frame.right || a.top < frame.top || a.bottom > frame.bottom)
    seen.push('outside: ' + text);
  boxes.slice(i + 1).forEach(([other, b]) => {
    if (a.left + 1 < b.right && b.left + 1 < a.right && a.top + 4 < b.bottom && b.top + 4 < a.bottom)
      seen.push('covers: ' + text + ' / ' + other);
  });
});
document.getElementById('seen').textContent = 'looked at ' + boxes.length + ' [' + seen.join('; ') + ']';
</script></body>)";
  for (const Case& one : all_cases()) {
    std::string page = one.page();
    page.replace(page.find("</body>"), 7, look);
    const Ran ran = browser.open(browser.scratch.write("page.html", page), "--dump-dom");
    const std::size_t at = ran.out.find("looked at ");
    BOOST_REQUIRE_MESSAGE(at != std::string::npos, one.name << ": the browser must have run the look");
    const std::string seen = ran.out.substr(at, ran.out.find("</p>", at) - at);
    BOOST_TEST(seen.find("[]") != std::string::npos, one.name << ": " << seen);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::gate
