#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ci/gate/explore.h"
#include "ci/gate/report.h"
#include "model/verdict.h"
#include "proptests/harness/schedule.h"

namespace weir::gate {
namespace {

using harness::explore::Act;
using harness::explore::Mark;
using harness::explore::Violation;

std::string grouped_digits(std::string digits) {
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string shortened(std::string text, std::size_t most) {
  if (text.size() > most) text.replace(most - 3, std::string::npos, "...");
  return text;
}

std::string scope_text(const Explored& explored) {
  const auto& scope = explored.scope;
  std::string text = fmt::format("{} clients x {} attempts x {} ticks of {}", scope.clients, scope.attempts,
                                 scope.ticks, model::show_time(scope.tick.count()));
  if (scope.faults > 0) text += fmt::format(", {} fault{}", scope.faults, scope.faults == 1 ? "" : "s");
  return text;
}

std::string symmetry_text(const Explored& explored) {
  if (explored.symmetric) return "like clients stand for each other";
  return explored.identity_matters ? "each client for itself: who it is reaches Redis" : "each client for itself";
}

std::string promise_text(const Explored& explored, int violation) {
  switch (static_cast<Violation>(violation)) {
    case Violation::over_admission: {
      const auto& last = explored.shortest.back();
      return fmt::format("limit {}: {} were admitted by {}", explored.limit, last.admitted,
                         model::show_time(last.told.clock_us - explored.scope.start.time_since_epoch().count()));
    }
    case Violation::endless_key:
      return "a key is left without an expiry while no client is under way: nothing removes it";
    case Violation::error_reply: return "an attempt ended in an error though nothing was wrong";
    case Violation::none: break;
  }
  return {};
}

/// The act, as the column of whoever does it says it.
std::string act_text(const Explored::Step& step) {
  const auto& [happening, told, admitted, keys] = step;
  std::string text = happening.act == Act::step ? "" : fmt::format("[{}] ", name(happening.act));
  if (happening.act == Act::tick || happening.act == Act::clock_back || happening.act == Act::clock_forward)
    return text;
  for (const auto& command : told.commands) {
    if (told.commands.size() > 1 && (command.front() == "MULTI" || command.front() == "EXEC")) continue;
    std::string words;
    const bool evaluates = command.front() == "EVALSHA" || command.front() == "EVAL";
    words = evaluates ? command.front() : harness::show(command);
    text += (text.empty() || text.ends_with("] ") ? "" : "; ") + shortened(words, 36);
  }
  if (told.reply && told.commands.size() == 1) text += " -> " + shortened(harness::show(*told.reply), 28);
  if (!told.outcome.empty()) text += "  " + shortened(told.outcome, 40);
  return text;
}

std::string way_text(const std::vector<harness::explore::Happening>& way) {
  std::string text;
  for (const auto& [act, client, key, retries] : way) {
    text += text.empty() ? "" : ", ";
    if (client >= 0) text += harness::client_name(client);
    if (act != Act::step) text += fmt::format("{}{}{}", client >= 0 ? " " : "", name(act), retries ? ", again" : "");
  }
  return text;
}

std::string table(const Explored& explored) {
  const auto clients = static_cast<std::size_t>(explored.scope.clients);
  std::vector<std::vector<std::string>> rows{{"step", "clock us"}};
  for (std::size_t client = 0; client < clients; ++client)
    rows.front().push_back("client " + harness::client_name(static_cast<int>(client)));
  for (const char* const head : {"server", "stored", "admitted"}) rows.front().emplace_back(head);
  for (const auto& step : explored.shortest) {
    std::vector<std::string> row(clients + 5);
    row[0] = std::to_string(rows.size());
    row[1] = std::to_string(step.told.clock_us - explored.scope.start.time_since_epoch().count());
    const int client = step.happening.client;
    row[2 + (client < 0 ? clients : static_cast<std::size_t>(client))] =
        step.happening.act == Act::tick ? "clock" : act_text(step);
    row[clients + 3] = step.keys;
    row[clients + 4] = std::to_string(step.admitted);
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> widths(clients + 5);
  for (const auto& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t column = 0; column < row.size(); ++column) {
      const bool unused = column == clients + 2 && widths[column] == rows.front()[column].size();
      if (!unused) line += fmt::format(" {:<{}} ", row[column], widths[column]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string obligations_text(const Explored& explored) {
  std::string text;
  for (const auto& obligation : explored.obligations) {
    const std::string times = !obligation.applies ? "no occasion" : grouped(obligation.times);
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", obligation.what, times,
                        obligation.is_met() ? "" : " (NOT MET)");
  }
  return text;
}

std::string excused_text(const Explored& explored) {
  const std::uint64_t excused = explored.search.marked[static_cast<std::size_t>(Mark::excused)];
  return fmt::format(
      "  lost data     {} admissions passed the capacity because data had been lost, none by more than it\n",
      grouped(excused));
}

}  // namespace

std::string explored_text(const Explored& explored) {
  const auto outcome = explored.outcome();
  const auto& search = explored.search;
  const char* const word = outcome == Explored::Outcome::pass   ? "PASS"
                           : outcome == Explored::Outcome::fail ? "FAIL"
                                                                : "INCONCLUSIVE";
  std::string text = fmt::format("{}  {}   limit {}   every order of {}\n", word, explored.contract.name,
                                 explored.limit, scope_text(explored));
  if (!explored.shortest.empty()) {
    text += fmt::format("\n  {}: {}\n\n{}\n", name(static_cast<Violation>(search.violation)),
                        promise_text(explored, search.violation), table(explored));
    text +=
        fmt::format("  certified     no violation with fewer than {} steps in this scope; fewest changes of who acts\n",
                    explored.shortest.size());
  }
  if (search.complete) text += fmt::format("  interleavings {}\n", grouped_digits(search.interleavings.str()));
  text += fmt::format("  states        {} ({}){}\n", grouped(search.states), symmetry_text(explored),
                      search.complete ? ", all of them" : "");
  text += fmt::format("  edges         {}, of {} different steps, each run on the server\n", grouped(search.edges),
                      grouped(explored.effects));
  for (const auto& [violation, count] : search.violations)
    if (search.complete)
      text += fmt::format("  violations    {} {}\n", grouped(count), name(static_cast<Violation>(violation)));
  if (explored.scope.faults > 0) text += excused_text(explored);
  text +=
      fmt::format("  attempts      up to {} round trips, {} alone\n", explored.longest_attempt, explored.attempt_alone);
  if (search.complete || explored.shortest.empty())
    text += fmt::format("  obligations   {}\n", obligations_text(explored));
  const auto different = std::ranges::find_if_not(explored.audit, &harness::explore::Replay::agrees);
  text += fmt::format("  audit         {} ways run from an empty server{}\n", explored.audit.size(),
                      different == explored.audit.end() ? " end as the search says" : ": one ends elsewhere");
  if (different != explored.audit.end())
    text += fmt::format("                way:      {}\n                searched: {}\n                ran:      {}\n",
                        way_text(different->way), different->searched, different->ran);
  if (!explored.cut_short.empty()) text += fmt::format("  cut short     {}\n", explored.cut_short);
  text += fmt::format("  server        Redis {}, clock held   {:.2f} s\n", explored.redis_version, explored.seconds);
  return text;
}

std::string explored_json(const Explored& explored, int exit_code) {
  using nlohmann::ordered_json;
  const auto& [scope, search] =
      std::pair<const harness::explore::Scope&, const decltype(explored.search)&>{explored.scope, explored.search};
  const auto outcome = explored.outcome();
  ordered_json json{
      {"schema", "weir-explore/1"},
      {"contract", explored.contract.file.string()},
      {"name", explored.contract.name},
      {"outcome", outcome == Explored::Outcome::pass   ? "pass"
                  : outcome == Explored::Outcome::fail ? "fail"
                                                       : "inconclusive"},
      {"exit_code", exit_code},
      {"scope",
       {{"clients", scope.clients},
        {"attempts", scope.attempts},
        {"ticks", scope.ticks},
        {"tick_us", scope.tick.count()},
        {"faults", scope.faults},
        {"jump_us", scope.jump.count()},
        {"capacity", scope.call.capacity},
        {"refill", scope.call.refill},
        {"period_us", scope.call.period_us}}},
      {"complete", search.complete},
      {"symmetric", explored.symmetric},
      {"states", search.states},
      {"edges", search.edges},
      {"effects", explored.effects},
      {"interleavings", search.complete ? ordered_json(search.interleavings.str()) : ordered_json()},
      {"excused", search.marked[static_cast<std::size_t>(Mark::excused)]},
      {"longest_attempt", explored.longest_attempt},
      {"attempt_alone", explored.attempt_alone},
      {"redis", explored.redis_version},
      {"clock", "held"},
      {"seconds", explored.seconds},
  };
  json["violations"] = ordered_json::object();
  for (const auto& [violation, count] : search.violations)
    json["violations"][name(static_cast<Violation>(violation))] = count;
  json["obligations"] = ordered_json::array();
  for (const auto& each : explored.obligations)
    json["obligations"].push_back(
        {{"what", each.what}, {"times", each.times}, {"applies", each.applies}, {"met", each.is_met()}});
  json["audit"] = {{"ways", explored.audit.size()}, {"agrees", explored.audit_agrees()}};
  if (explored.shortest.empty()) return json.dump(2) + '\n';
  ordered_json steps = ordered_json::array();
  for (const auto& step : explored.shortest) {
    ordered_json row{{"act", name(step.happening.act)}, {"clock_us", step.told.clock_us}};
    if (step.happening.client >= 0) row["client"] = harness::client_name(step.happening.client);
    if (step.happening.key >= 0) row["key"] = step.happening.key;
    if (step.happening.retries) row["retries"] = true;
    for (const auto& command : step.told.commands) row["commands"].push_back(harness::show(command));
    if (step.told.reply) row["reply"] = harness::show(*step.told.reply);
    if (!step.told.outcome.empty()) row["outcome"] = step.told.outcome;
    row["stored"] = step.keys;
    row["admitted"] = step.admitted;
    steps.push_back(std::move(row));
  }
  json["counterexample"] = {{"breaks", name(static_cast<Violation>(search.violation))}, {"steps", std::move(steps)}};
  return json.dump(2) + '\n';
}

}  // namespace weir::gate
