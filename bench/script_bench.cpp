// What does the script that ships cost a Redis, beside the token bucket first published?
//
// Both run in one private server with an append-only file, on the same keys and with the same
// arguments, repetition by repetition in random order, so that the machine's mood falls on both alike.
// Two batches are under way at any time: the server never waits for us. Then a table of medians, side by side.

#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lua/scripts.h"
#include "proptests/harness/server.h"

namespace {

using namespace std::chrono_literals;
using weir::harness::Command;
using weir::harness::Connection;
using weir::harness::Reply;
using weir::harness::Server;

constexpr std::array<std::pair<std::string_view, std::string_view>, 2> scripts{{
    {"published", weir::lua::token_bucket_as_published},
    {"shipped", weir::lua::token_bucket},
}};
constexpr int keys = 1'024;
constexpr int batch_size = 64;
constexpr weir::Instant start{1'764'547'200s};  // 2025-12-01

/// Who is asked for what. A key of "allow" is filled long before its capacity is spent; one of "deny" is
/// drained at first, and one token of the hundred asked for comes back a second.
struct Case {
  std::string name;
  std::string capacity;
  std::string cost;
  std::int64_t allowed;
};
const std::array cases{Case{"allow", "1000000", "1", 1}, Case{"deny", "100", "100", 0}};

/// The folder of the append-only file; gone with this process.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weir-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error{"cannot make " + pattern};
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// With two cores or more, one for the server and another for us: their moves would be noise.
void pin(int process, unsigned core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(process, sizeof set, &set);  // where this is refused, the numbers are only noisier
}

class Redis {
 public:
  Redis() : server_{{.append_only = folder_.path(), .arguments = {"--auto-aof-rewrite-percentage", "0"}}} {
    if (std::filesystem::exists("/sys/devices/system/cpu/cpu1")) {
      pin(server_.pid(), 0);
      pin(0, 1);
    }
  }

  /// Forgets every bucket, and what the script was called by. Returns its SHA-1.
  std::string begin(std::string_view script) {
    connection_.run({"FLUSHALL"});
    server_.set_clock(start);
    return connection_.run({"SCRIPT", "LOAD", std::string{script}}).text;
  }

  Server& server() { return server_; }
  Connection& connection() { return connection_; }

  /// Bytes appended so far.
  std::int64_t aof_bytes() {
    constexpr std::string_view field = "aof_current_size:";
    const std::string info = connection_.run({"INFO", "persistence"}).text;
    const std::size_t at = info.find(field);
    if (at == std::string::npos) throw std::runtime_error{"INFO persistence tells no aof_current_size"};
    return std::stoll(info.substr(at + field.size()));
  }

 private:
  Folder folder_;
  Server server_;
  Connection connection_ = server_.connect();
};

/// Every key once, `batch_size` commands to a batch.
std::vector<std::vector<Command>> batches_of(const std::string& sha, const Case& of) {
  std::vector<std::vector<Command>> batches(keys / batch_size);
  for (int key = 0; key < keys; ++key) {
    batches[static_cast<std::size_t>(key / batch_size)].push_back(
        {"EVALSHA", sha, "1", fmt::format("rl:{{{}}}", key), of.capacity, "1", of.cost});
  }
  return batches;
}

bool all_answer(const std::vector<Reply>& replies, std::int64_t allowed) {
  for (const Reply& reply : replies) {
    if (reply.kind != Reply::Kind::array || reply.elements.at(0).integer != allowed) return false;
  }
  return true;
}

void decide_in_redis(benchmark::State& state, Redis& redis, std::string_view script, const Case& of) {
  const auto batches = batches_of(redis.begin(script), of);
  Server& server = redis.server();
  Connection& connection = redis.connection();
  for (const auto& batch : batches) connection.pipeline(batch);  // the keys are there, and drained where asked for

  weir::Instant now = start;
  std::size_t next = 0;
  const auto send = [&] {
    server.set_clock(now += 1ms);
    connection.send(batches[next++ % batches.size()]);
  };
  const std::int64_t aof_before = redis.aof_bytes();
  const auto cpu_before = server.cpu_time();
  send();
  for ([[maybe_unused]] auto _ : state) {
    send();
    if (!all_answer(connection.receive(batch_size), of.allowed)) {
      return state.SkipWithError("answered otherwise than this case is about");
    }
  }
  connection.receive(batch_size);
  const auto cpu = server.cpu_time() - cpu_before;
  const std::int64_t aof = redis.aof_bytes() - aof_before;

  const auto decisions = static_cast<double>(next * batch_size);
  state.SetItemsProcessed(state.iterations() * batch_size);
  state.counters["server_us"] = static_cast<double>(cpu.count()) / decisions;
  state.counters["aof_bytes"] = static_cast<double>(aof) / decisions;
}

/// Prints as usual, then the medians of both scripts side by side.
class SideBySide : public benchmark::ConsoleReporter {
 public:
  SideBySide() : ConsoleReporter{::isatty(STDOUT_FILENO) != 0 ? OO_ColorTabular : OO_Tabular} {}

  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.aggregate_name != "median" && run.aggregate_name != "cv") continue;
      for (const auto& [counter, value] : run.counters) {
        figures_[{run.run_name.function_name, counter, run.aggregate_name}] = value;
      }
    }
  }

  void Finalize() override {
    fmt::print("\n{:30}{:>14}{:>14}{:>22}\n", "median (spread)", "published", "shipped", "shipped / published");
    for (const Case& of : cases) {
      line(of, "items_per_second", "decisions a second");
      line(of, "server_us", "server CPU, us a decision");
      line(of, "aof_bytes", "AOF bytes a decision");
    }
  }

 private:
  [[nodiscard]] double figure(const std::string& script, const Case& of, const char* counter, const char* which) const {
    const auto found = figures_.find({"BM_Script_" + script + "/" + of.name, counter, which});
    return found == figures_.end() ? 0 : found->second;
  }

  void line(const Case& of, const char* counter, const char* title) const {
    const double published = figure("published", of, counter, "median");
    const double shipped = figure("shipped", of, counter, "median");
    if (published == 0) return;  // filtered out
    const auto told = [&](const char* script, double median) {
      const double spread = median == 0 ? 0 : 100 * figure(script, of, counter, "cv");
      return fmt::format("{:.{}f} ({:.0f} %)", median, median < 1'000 ? 1 : 0, spread);
    };
    fmt::print("{:30}{:>14}{:>14}{:>22.2f}\n", of.name + ": " + title, told("published", published),
               told("shipped", shipped), shipped / published);
  }

  std::map<std::tuple<std::string, std::string, std::string>, double> figures_;
};

void run_both() {
  Redis redis;
  for (const auto& [name, text] : scripts) {
    for (const Case& of : cases) {
      const auto run = [&, text = text](benchmark::State& state) { decide_in_redis(state, redis, text, of); };
      benchmark::RegisterBenchmark(fmt::format("BM_Script_{}/{}", name, of.name).c_str(), run)->UseRealTime();
    }
  }
  SideBySide reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
}

}  // namespace

int main(int argc, char** argv) try {
  std::array<std::string, 4> defaults{"--benchmark_enable_random_interleaving=true", "--benchmark_repetitions=15",
                                      "--benchmark_min_time=0.3", "--benchmark_report_aggregates_only=true"};
  std::vector<char*> arguments{argv, argv + argc};
  for (std::string& flag : defaults) arguments.insert(arguments.begin() + 1, flag.data());  // what you give comes later
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 3;
  run_both();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "script_bench: %s\n", error.what());
  return 4;
}
