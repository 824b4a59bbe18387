// The `weir` command: judges limiters, replays counterexamples, shows stored buckets.

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "ci/gate/check.h"
#include "ci/gate/explore_command.h"
#include "ci/gate/machine.h"
#include "ci/gate/peek.h"
#include "ci/gate/picture.h"
#include "ci/gate/replay.h"
#include "ci/gate/report.h"
#include "ci/gate/repro.h"
#include "model/verdict.h"
#include "proptests/harness/error.h"
#include "proptests/harness/lua_host.h"
#include "proptests/vectors/vectors.h"

namespace weir::gate {
namespace {

// DESIGN, section 5. Of several, the worst in the order 4, 1, 2, 0.
constexpr int exit_usage = 3;
constexpr int exit_environment = 4;

int worse(int left, int right) {
  const auto rank = [](int code) { return code == 4 ? 3 : code == 1 ? 2 : code == 2 ? 1 : 0; };
  return rank(left) >= rank(right) ? left : right;
}

extern "C" void on_interrupt(int) {
  interrupted = 1;
}

void stop_politely_on_signals() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one kills
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of writing, seen there
}

/// "30s", "500ms", "2m": a whole number and a unit.
std::chrono::milliseconds parse_budget(const std::string& text) {
  std::int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string unit{rest, text.data() + text.size()};
  const std::int64_t ms = unit == "ms" ? 1 : unit == "s" ? 1'000 : unit == "m" ? 60'000 : 0;
  if (error != std::errc{} || ms == 0 || number < 1 || number > 86'400'000 / ms)
    throw CLI::ValidationError(
        "--budget", fmt::format("'{}' is no time: a whole number and ms, s or m is, up to a day: 30s", text));
  return std::chrono::milliseconds{number * ms};
}

struct CheckOptions {
  std::vector<std::string> contracts;
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> cases;
  std::string budget;
  std::string junit;
  std::string json;
  std::string out = "weir-out";
  bool no_progress = false;
};

/// One line that is written over, and only where a person watches.
class ProgressLine {
 public:
  explicit ProgressLine(bool shown) : shown_(shown) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& limiter, const std::string& part, std::uint64_t done, std::uint64_t of) {
    if (!shown_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds{100}) return;
    last_ = now;
    const std::string count = of > 0 ? fmt::format("{} / {}", grouped(done), grouped(of)) : std::string{};
    fmt::print(stderr, "\r\x1b[K{}: {} {}", limiter, part, count);
    std::fflush(stderr);
  }
  void clear() const {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
    std::fflush(stderr);
  }

 private:
  bool shown_;
  std::chrono::steady_clock::time_point last_;
};

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw harness::EnvironmentError("the output cannot be written: is the disk full, or its reader gone?");
}

/// Of one limiter, an example a promise; of several, the worst of each, so that all of them are seen.
std::string examples_text(const Card& card, bool only_the_worst, Dress dress) {
  std::string text;
  if (const Counterexample* found = worst(card); only_the_worst && found != nullptr)
    return counterexample_text(*found, card.contract, dress) + '\n';
  for (const Line& line : card.lines)
    if (!line.counterexamples.empty())
      text += counterexample_text(line.counterexamples.front(), card.contract, dress) + '\n';
  return text;
}

int run_check(const CheckOptions& options) {
  Effort effort;
  effort.seed = options.seed;
  effort.cases = options.cases;
  if (!options.budget.empty()) effort.deadline = std::chrono::steady_clock::now() + parse_budget(options.budget);
  const Dress dress{.colour = isatty(STDOUT_FILENO) != 0};
  const bool json_only = options.json == "-";

  // A mistake in the last contract is told before the first has run for minutes.
  for (const std::string& contract : options.contracts) const harness::LuaHost checked{contract};

  ProgressLine progress{!options.no_progress && isatty(STDERR_FILENO) != 0};
  std::vector<Card> cards;
  int code = 0;
  for (const std::string& contract : options.contracts) {
    Card card = check(contract, effort, [&](const auto&... what) { progress.show(what...); });
    progress.clear();
    for (Line& line : card.lines)
      for (Counterexample& found : line.counterexamples) {
        found.file = write_repro(options.out, found, card);
        write_whole(picture_file(found.file), picture_page(found, card.contract, card.redis_version, found.file));
      }
    if (!json_only) print(card_text(card, dress) + '\n' + examples_text(card, options.contracts.size() > 1, dress));
    code = worse(code, card.exit_code());
    cards.push_back(std::move(card));
    if (interrupted != 0) break;
  }
  const std::string json = result_json(cards, effort, code);
  if (json_only)
    print(json);
  else if (!options.json.empty())
    write_whole(options.json, json);
  if (!options.junit.empty()) write_whole(options.junit, junit_xml(cards));
  if (!json_only) print(summary_text(cards));
  return code;
}

struct ReplayOptions {
  std::string file;
  std::string contract;
  std::string html;
  std::string svg;
};

int run_replay(const ReplayOptions& options) {
  const Dress dress{.colour = isatty(STDOUT_FILENO) != 0};
  const Replayed replayed = replay(
      options.file, options.contract.empty() ? std::nullopt : std::optional<std::filesystem::path>{options.contract});
  const Counterexample& found = replayed.found;
  const bool failed = replayed.failed || !replayed.other.empty();
  if (failed) {
    print(counterexample_text(found, replayed.contract, dress));
    if (!options.html.empty())
      write_whole(options.html, picture_page(found, replayed.contract, replayed.redis_version, options.file));
    if (!options.svg.empty()) write_whole(options.svg, picture_svg(found, replayed.contract));
  } else {
    print(fmt::format("PASS  {}.{} does not happen any more   ({})\n", replayed.repro.promise, replayed.repro.kind,
                      replayed.contract.name));
  }
  const char* expected = replayed.repro.expect_fail ? "fail" : "pass";
  const int code = replayed.exit_code();
  if (!replayed.other.empty())
    print(fmt::format("weir: it failed, but not as the file says ({}.{})\n", replayed.repro.promise,
                      replayed.repro.kind));
  else if (code == 0)
    print(fmt::format("weir: {}, as the file expects\n", failed ? "fails" : "passes"));
  else if (code == 1)
    print(fmt::format("weir: {}; the file expects \"{}\"{}\n", failed ? "fails" : "passes", expected,
                      failed ? "" : ": set it to \"pass\" to keep the bug away"));
  return code;
}

int run(int argc, char** argv) {
  CLI::App app{
      "weir judges rate limiters: it runs one on a real Redis whose clock it owns, holds every answer\n"
      "against an exact model, and prints the smallest history in which they part."};
  app.set_version_flag("--version", WEIR_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples\n"
      "  weir check lua/contracts/token_bucket.lua                 judge one limiter\n"
      "  weir check my_limiter.lua --budget 30s --junit weir.xml   in CI: a hard wall, and a report\n"
      "  weir replay weir-out/my_limiter-clock-over-admission-3f2c.json\n"
      "  weir peek 'rl:{tenant}' --socket /run/redis/redis.sock    what a stored bucket says\n\n"
      "Exit codes: 0 pass, 1 violation (or an unexpected pass), 2 inconclusive, 3 usage, 4 environment.");

  CheckOptions options;
  CLI::App* check = app.add_subcommand("check", "Judge limiters by their contracts, a line a promise");
  check->add_option("contracts", options.contracts, "Contract files (Lua); README.md shows how to write one")
      ->required()
      ->type_name("CONTRACT...");
  check->add_option("--seed", options.seed, "Where random choices begin; the same seed tries the same")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  check
      ->add_option("--cases", options.cases,
                   "Decisions to try for each contract (60000 of a script, 6000 of a client program)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000'000}));
  check->add_option("--budget", options.budget,
                    "Wall time for everything, as 30s, 500ms or 2m; partial results after it");
  check->add_option("--json", options.json, "Write the result as JSON to FILE ('-', or nothing: standard output)")
      ->type_name("FILE")
      ->expected(0, 1)
      ->default_str("-");
  check->add_option("--junit", options.junit, "Write JUnit XML to FILE")->type_name("FILE");
  check->add_option("--out", options.out, "Directory for counterexamples")->capture_default_str()->type_name("DIR");
  check->add_flag("--no-progress", options.no_progress, "No progress line, even on a terminal");

  ReplayOptions replay_options;
  CLI::App* replay = app.add_subcommand("replay", "Run a counterexample again");
  replay->add_option("file", replay_options.file, "A file that `weir check` wrote")->required()->type_name("FILE");
  replay->add_option("--contract", replay_options.contract, "Judge this contract instead of the one the file names")
      ->type_name("CONTRACT");
  replay->add_option("--html", replay_options.html, "Draw it, if it fails, as a page for a browser")->type_name("FILE");
  replay->add_option("--svg", replay_options.svg, "Draw it, if it fails, as a picture alone")->type_name("FILE");

  PeekOptions peek_options;
  CLI::App* peek = app.add_subcommand("peek", "Show a bucket that lua/token_bucket.lua has stored, for people");
  peek->add_option("key", peek_options.key, "The key of the bucket")->required()->type_name("KEY");
  peek->add_option("--host", peek_options.host, "Redis server")->capture_default_str();
  peek->add_option("--port", peek_options.port, "Its port")->check(CLI::Range(1, 65'535))->capture_default_str();
  peek->add_option("--socket", peek_options.socket, "Its unix socket, instead of host and port")->type_name("PATH");

  std::string vectors_file;
  CLI::App* vectors_command =
      app.add_subcommand("vectors", "Print the test vectors that other implementations are held to");
  vectors_command->add_option("--check", vectors_file, "Compare this file instead: exit 1 where the model differs")
      ->type_name("FILE");

  const auto run_explore = add_explore_command(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
  try {
    if (check->parsed()) return run_check(options);
    if (replay->parsed()) return run_replay(replay_options);
    if (app.got_subcommand("explore")) return run_explore();
    if (vectors_command->parsed()) return vectors::run(vectors_file);
    return run_peek(peek_options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_usage;
  }
}

}  // namespace
}  // namespace weir::gate

int main(int argc, char** argv) {
  weir::gate::stop_politely_on_signals();
  try {
    return weir::gate::run(argc, argv);
  } catch (const weir::harness::ContractError& error) {
    fmt::print(stderr, "weir: {}\n", error.what());
    return weir::gate::exit_usage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "weir: {}\n", error.what());
    return weir::gate::exit_environment;
  }
}
