#include "ci/gate/machine.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "ci/gate/report.h"

namespace weir::gate {
namespace {

using Json = nlohmann::ordered_json;

constexpr int schema = 1;

const char* status_name(Line::Status status) {
  switch (status) {
    case Line::Status::pass: return "pass";
    case Line::Status::fail: return "fail";
    case Line::Status::inconclusive: return "inconclusive";
    case Line::Status::not_promised: break;
  }
  return "not_promised";
}

const char* outcome_name(Card::Outcome outcome) {
  switch (outcome) {
    case Card::Outcome::pass: return "pass";
    case Card::Outcome::fail: return "fail";
    case Card::Outcome::inconclusive: break;
  }
  return "inconclusive";
}

std::int64_t peak_memory_kb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

Json line_json(const Line& line) {
  Json found = Json::array();
  for (const Counterexample& example : line.counterexamples) {
    found.push_back({{"kind", example.failure.kind},
                     {"why", example.failure.why},
                     {"calls", example.history.scenario.calls.size()},
                     {"certified", example.certified},
                     {"runs", example.runs},
                     {"second_run_differs", example.second_run_differs},
                     {"file", example.file.generic_string()}});
  }
  return {{"promise", name(line.promise)},
          {"status", status_name(line.status)},
          {"note", line.note},
          {"counterexamples", found}};
}

Json coverage_json(const model::Coverage& seen) {
  return {{"calls", seen.calls},
          {"allowed", seen.allowed},
          {"denied", seen.denied},
          {"never", seen.never},
          {"peeks", seen.peeks},
          {"bad_input", seen.bad_input},
          {"clock_back", seen.clock_back},
          {"plan_changed", seen.plan_changed},
          {"expired", seen.expired},
          {"emptied", seen.emptied},
          {"at_boundary", seen.at_boundary},
          {"before_boundary", seen.before_boundary}};
}

std::string xml(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\n': escaped += "&#10;"; break;
      default:
        if (static_cast<unsigned char>(letter) >= 0x20)
          escaped += letter;
        else
          escaped += '?';  // XML 1.0 has no other control characters
    }
  }
  return escaped;
}

}  // namespace

std::string result_json(const std::vector<Card>& cards, const Effort& effort, int exit_code) {
  Json limiters = Json::array();
  for (const Card& card : cards) {
    Json lines = Json::array();
    for (const Line& line : card.lines) lines.push_back(line_json(line));
    limiters.push_back(
        {{"name", card.contract.name},
         {"contract", card.contract.file.generic_string()},
         {"verdict", outcome_name(card.outcome())},
         {"as_expected", card.as_expected()},
         {"cut_short", card.cut_short},
         {"decisions", card.decisions},
         {"seconds", card.seconds},
         {"decisions_per_s", card.seconds > 0 ? static_cast<double>(card.decisions) / card.seconds : 0.0},
         {"redis", card.redis_version},
         {"coverage", coverage_json(card.coverage)},
         {"promises", lines}});
  }
  const Json root{{"schema", schema},       {"tool", "weir check"},
                  {"seed", effort.seed},    {"cases", effort.cases ? Json(*effort.cases) : Json(nullptr)},
                  {"exit_code", exit_code}, {"peak_memory_kb", peak_memory_kb()},
                  {"limiters", limiters}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string junit_xml(const std::vector<Card>& cards) {
  std::string suites;
  std::size_t all_tests = 0;
  std::size_t all_failures = 0;
  for (const Card& card : cards) {
    std::string cases;
    std::size_t failures = 0;
    std::size_t skipped = 0;
    for (const Line& line : card.lines) {
      const auto said = card.contract.expect.find(std::string{name(line.promise)});
      const bool should_fail = said != card.contract.expect.end() && said->second == "fail";
      const auto where = card.contract.lines.find(
          line.status == Line::Status::fail && card.contract.lines.contains("script") ? "script" : "name");
      cases += fmt::format(R"(    <testcase classname="{}" name="{}" file="{}" line="{}")", xml(card.contract.name),
                           name(line.promise), xml(card.contract.file.generic_string()),
                           where == card.contract.lines.end() ? 1 : where->second);
      const bool failed = line.status == Line::Status::fail;
      if (failed && !should_fail) {
        ++failures;
        cases += ">\n";
        for (const Counterexample& found : line.counterexamples)
          cases += fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n", xml(found.failure.name()),
                               xml(found.failure.why), xml(counterexample_text(found, card.contract, {})));
        cases += "    </testcase>\n";
      } else if (should_fail && line.status == Line::Status::pass) {
        ++failures;
        cases +=
            ">\n      <failure type=\"unexpected_pass\" message=\"expected to fail, and passed\"/>\n    </testcase>\n";
      } else if (line.status == Line::Status::not_promised || line.status == Line::Status::inconclusive) {
        ++skipped;
        cases += fmt::format(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", xml(line.note));
      } else {
        cases += "/>\n";
      }
    }
    suites += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n{}  </testsuite>\n",
        xml(card.contract.name), card.lines.size(), failures, skipped, card.seconds, cases);
    all_tests += card.lines.size();
    all_failures += failures;
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{}\" failures=\"{}\">\n{}</testsuites>\n",
      all_tests, all_failures, suites);
}

}  // namespace weir::gate
