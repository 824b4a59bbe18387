#include "ci/gate/explore_command.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <string>

#include "ci/gate/check.h"
#include "ci/gate/explore.h"
#include "proptests/harness/error.h"

namespace weir::gate {
namespace {

struct Asked {
  std::string contract;
  std::string tick;
  std::string expect;
  bool json = false;
  ExploreOptions options;
};

/// "1s", "500ms", "1us".
Micros parse_tick(const std::string& text) {
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit{rest, text.data() + text.size()};
  const std::int64_t us = unit == "us" ? 1 : unit == "ms" ? 1'000 : unit == "s" ? 1'000'000 : 0;
  if (error != std::errc{} || us == 0 || number < 1 || number > 86'400'000'000 / us)
    throw CLI::ValidationError(
        "--tick", fmt::format("'{}' is no time: a whole number and us, ms or s is, up to a day: 250ms", text));
  return Micros{number * us};
}

bool is_expected_to_fail(const Asked& asked, const Explored& explored) {
  if (!asked.expect.empty()) return asked.expect == "fail";
  return explored.contract.expect.contains("concurrency");
}

int run_explore(Asked& asked) {
  if (!asked.tick.empty()) asked.options.tick = parse_tick(asked.tick);
  const Explored explored = explore(asked.contract, asked.options, [](std::uint64_t) {
    if (interrupted != 0)
      throw harness::EnvironmentError("interrupted: the search is not complete, so it says nothing");
  });
  const bool fails = is_expected_to_fail(asked, explored);
  const auto outcome = explored.outcome();
  const int code = outcome == Explored::Outcome::inconclusive      ? 2
                   : (outcome == Explored::Outcome::fail) == fails ? 0
                                                                   : 1;
  std::string text = asked.json ? explored_json(explored, code) : explored_text(explored);
  if (!asked.json && fails && outcome != Explored::Outcome::inconclusive)
    text += outcome == Explored::Outcome::fail ? "weir: fails, as is expected of it\n"
                                               : "weir: passes this scope, and is expected to fail\n";
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw harness::EnvironmentError("the output cannot be written: is the disk full, or its reader gone?");
  return code;
}

}  // namespace

std::function<int()> add_explore_command(CLI::App& app) {
  auto asked = std::make_shared<Asked>();
  ExploreOptions& options = asked->options;
  CLI::App* command = app.add_subcommand("explore", "Run every order of the steps of a few clients, and of faults");
  command->add_option("contract", asked->contract, "Contract file (Lua)")->required()->type_name("CONTRACT");
  command->add_option("--clients", options.clients, "Clients that overlap")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  command->add_option("--attempts", options.attempts, "Calls of each")->check(CLI::Range(1, 8))->capture_default_str();
  command->add_option("--ticks", options.ticks, "Steps of the clock")->check(CLI::Range(0, 8))->capture_default_str();
  command
      ->add_option("--tick", asked->tick,
                   "How far each goes, as 1s, 250ms or 1us; the emission interval, or the window")
      ->type_name("TIME");
  command->add_option("--capacity", options.capacity, "Of the limit; fewer than the calls of the scope");
  command->add_option("--refill", options.refill, "Of the limit; the least that the contract claims");
  command->add_option("--faults", options.faults, "Faults in one run, of every kind")
      ->check(CLI::Range(0, 2))
      ->capture_default_str();
  command->add_flag("--keep-going", options.keep_going, "See every state, even past a violation");
  command->add_option("--expect", asked->expect, "What is expected of this scope; what the contract says, if left out")
      ->check(CLI::IsMember({"pass", "fail"}));
  command->add_flag("--json", asked->json, "Print the result as JSON");
  return [asked] { return run_explore(*asked); };
}

}  // namespace weir::gate
