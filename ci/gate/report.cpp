#include "ci/gate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace weir::gate {
namespace {

using model::Expected;
using model::Observation;
using model::show_time;

constexpr std::array<const char*, model::promise_count> promise_texts{
    "never more than capacity plus refill, in any window",
    "allows and denies what the exact model does",
    "the wait it tells is enough, and no longer than needed",
    "tokens left and time to full are the model's",
    "every key expires: not too soon, not too late",
    "denials, peeks, impossible costs and errors write nothing",
    "bad input is refused, without a trace and without effect",
    "a clock that steps back earns nothing",
    "a changed limit counts from the next call, exactly",
    "tenants stay apart; only declared keys are touched",
    "callers that overlap get no more than one by one",
};

std::string dressed(std::string_view text, const char* code, Dress dress) {
  return dress.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string{text};
}
constexpr const char* red = "1;31";
constexpr const char* green = "1;32";
constexpr const char* yellow = "1;33";
constexpr const char* bold = "1";

/// A table's cell; the whole text stands in the sentence above it or in the JSON.
std::string shortened(std::string text) {
  constexpr std::size_t most = 60;
  if (text.size() > most) text.replace(most - 3, std::string::npos, "...");
  return text;
}

}  // namespace

std::string promise_text(model::Promise promise) {
  return promise_texts[static_cast<std::size_t>(promise)];
}

std::string spaced(std::string words) {
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string limit_text(const model::Plan& plan) {
  const std::string period = plan.period_us.is_whole() ? show_time(plan.period_us.whole) : plan.period_us.text();
  const auto quoted = [](const model::Quantity& quantity) {
    return quantity.is_whole() ? quantity.text() : '"' + quantity.text() + '"';
  };
  return fmt::format("{}, +{} per {}", quoted(plan.capacity), quoted(plan.refill), period);
}

std::string seen_text(const Observation& seen) {
  switch (seen.kind) {
    case Observation::Kind::error: return shortened("error: " + seen.text);
    case Observation::Kind::malformed: return shortened("unreadable: " + seen.text);
    case Observation::Kind::no_reply: return "no reply";
    case Observation::Kind::answered: break;
  }
  std::string text = seen.allowed ? "ALLOWED" : "denied";
  if (seen.remaining) text += fmt::format(", {} left", *seen.remaining);
  if (seen.told_never)
    text += ", never";
  else if (!seen.allowed && seen.retry_after_us)
    text += ", retry in " + show_time(*seen.retry_after_us);
  return text;
}

std::string right_text(const Expected& expected) {
  if (expected.bad) return "must be refused";
  switch (expected.decision.outcome) {
    case Outcome::allowed: return fmt::format("ALLOWED, {} left", expected.decision.remaining);
    case Outcome::never: return "denied, never";
    case Outcome::denied: break;
  }
  return fmt::format("denied, retry in {}", show_time(expected.decision.retry_after->count()));
}

namespace {

struct Row {
  std::array<std::string, 7> cells;
};

std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, 7> widths{};
  for (const Row& row : rows)
    for (std::size_t column = 0; column < row.cells.size(); ++column)
      widths[column] = std::max(widths[column], row.cells[column].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line = "  ";
    for (std::size_t column = 0; column < row.cells.size(); ++column)
      if (widths[column] > 0) line += fmt::format("{:<{}}  ", row.cells[column], widths[column]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

/// "negative cost: minted in 3 calls"
std::string short_text(const Counterexample& found) {
  std::string kind = found.failure.kind;
  if (const auto dot = kind.find('.'); dot != std::string::npos) kind.replace(dot, 1, ": ");
  const std::size_t size =
      found.interleaving ? found.interleaving->schedule.size() : found.history.scenario.calls.size();
  return fmt::format("{} in {} {}{}", spaced(std::move(kind)), size, found.interleaving ? "step" : "call",
                     size == 1 ? "" : "s");
}

std::string calls_table(const Counterexample& found) {
  const model::Scenario& scenario = found.history.scenario;
  const bool tenants = std::any_of(scenario.calls.begin(), scenario.calls.end(),
                                   [](const model::TimedCall& call) { return call.tenant > 0; });
  std::vector<Row> rows{{{"call", "clock", tenants ? "tenant" : "", "limit", "cost", "limiter", "model"}}};
  std::int64_t clock = 0;
  for (std::size_t index = 0; index < found.history.seen.size(); ++index) {
    const model::TimedCall& call = scenario.calls[index];
    clock += call.advance_us;
    const bool known = index < found.verdict.expected.size();
    std::string right = known ? right_text(found.verdict.expected[index]) : "";
    if (index == found.failure.call) right += "   <- here they part";
    rows.push_back(
        {{std::to_string(index + 1), show_time(clock), tenants ? (call.tenant == 0 ? "A" : "B") : "",
          limit_text(scenario.plan_of(call)), call.cost.is_whole() ? call.cost.text() : '"' + call.cost.text() + '"',
          seen_text(found.history.seen[index]), right}});
  }
  return table(rows);
}

}  // namespace

std::filesystem::path picture_file(const std::filesystem::path& repro) {
  return std::filesystem::path{repro}.replace_extension(".html");
}

std::string grouped(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, ",");
  return digits;
}

std::string card_text(const Card& card, Dress dress) {
  std::string text = fmt::format("{}   {}\n", dressed(card.contract.name, bold, dress), card.contract.file.string());
  for (const Line& line : card.lines) {
    const auto said = card.contract.expect.find(std::string{name(line.promise)});
    const bool expected = said != card.contract.expect.end() && said->second == "fail";
    std::string verdict;
    std::string note = promise_text(line.promise);
    switch (line.status) {
      case Line::Status::pass: verdict = dressed("PASS", green, dress); break;
      case Line::Status::fail:
        verdict = dressed("FAIL", red, dress);
        note = line.counterexamples.empty() ? line.note : short_text(line.counterexamples.front());
        if (line.counterexamples.size() > 1) note += fmt::format("; and {} more", line.counterexamples.size() - 1);
        break;
      case Line::Status::inconclusive:
        verdict = dressed("????", yellow, dress);
        note = "inconclusive: " + line.note;
        break;
      case Line::Status::not_promised:
        verdict = " -- ";
        note = "not judged: " + line.note;
        break;
    }
    if (line.status == Line::Status::pass && !line.note.empty()) note = line.note;
    if (expected && line.status == Line::Status::fail) note += "   (expected)";
    if (expected && line.status == Line::Status::pass) note += "   (expected to fail, and did not)";
    text += fmt::format("  {}  {:<13}{}\n", verdict, spaced(std::string{name(line.promise)}), note);
  }
  text += fmt::format("  {} decisions in {:.1f} s on Redis {}, each held against the exact model\n",
                      grouped(card.decisions), card.seconds, card.redis_version);
  if (!card.cut_short.empty()) text += fmt::format("  cut short: {}\n", card.cut_short);
  return text;
}

std::string counterexample_text(const Counterexample& found, const harness::Contract& contract, Dress dress) {
  std::string text =
      fmt::format("{}  {}: {}   ({})\n", dressed("FAIL", red, dress), spaced(std::string{name(found.failure.promise)}),
                  spaced(found.failure.kind), contract.name);
  text += fmt::format("      {}\n\n", found.failure.why);
  text += found.interleaving ? found.steps : calls_table(found) + '\n';
  if (found.second_run_differs)
    text += "  its second run came out differently: the limiter is not deterministic, and this is no verdict\n";
  if (found.certified)
    text += fmt::format("  certified: nothing with fewer {} fails in the scope that was searched\n",
                        found.interleaving ? "clients or calls" : "calls");
  if (!found.file.empty()) {
    text += fmt::format("  replay: weir replay {}\n", found.file.string());
    text += fmt::format("  picture: {}\n", picture_file(found.file).string());
  }
  return text;
}

const Counterexample* worst(const Card& card) {
  const Counterexample* worst = nullptr;
  for (const Line& line : card.lines)
    for (const Counterexample& found : line.counterexamples)
      if (worst == nullptr || severity(found.failure) < severity(worst->failure)) worst = &found;
  return worst;
}

std::size_t severity(const model::Failure& failure) {
  constexpr std::array<std::string_view, 8> worst_first{"over_admission", "minted",         "no_expiry", "too_short",
                                                        "spoilt",         "wrongly_denied", "wrote",     "accepted"};
  const std::string_view what = std::string_view{failure.kind}.substr(failure.kind.find('.') + 1);
  return static_cast<std::size_t>(std::find(worst_first.begin(), worst_first.end(), what) - worst_first.begin());
}

std::string summary_text(const std::vector<Card>& cards) {
  std::size_t passed = 0;
  std::size_t failed_as_expected = 0;
  std::size_t failed = 0;
  std::size_t open = 0;
  std::string surprises;
  for (const Card& card : cards) {
    const int code = card.exit_code();
    if (code == 1) {
      ++failed;
      surprises += fmt::format("{}{}", surprises.empty() ? "" : ", ", card.contract.name);
    } else if (code == 2) {
      ++open;
    } else if (card.outcome() == Card::Outcome::fail) {
      ++failed_as_expected;
    } else {
      ++passed;
    }
  }
  std::vector<std::string> parts;
  const auto add = [&](std::size_t count, const char* what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
  };
  add(passed, passed == 1 ? "passes every promise" : "pass every promise");
  add(failed_as_expected, failed_as_expected == 1 ? "fails as expected" : "fail as expected");
  add(failed, "not as expected");
  add(open, "inconclusive");
  std::string text = fmt::format("weir: {} {}: ", cards.size(), cards.size() == 1 ? "limiter" : "limiters");
  for (std::size_t index = 0; index < parts.size(); ++index) text += (index > 0 ? ", " : "") + parts[index];
  if (!surprises.empty()) text += " (" + surprises + ")";
  return text + '\n';
}

}  // namespace weir::gate
