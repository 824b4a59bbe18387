#include "proptests/harness/server.h"

#include <fmt/format.h>
#include <sys/un.h>
#include <time.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <thread>
#include <utility>

#include "proptests/harness/child_process.h"
#include "proptests/harness/clock_page.h"
#include "proptests/harness/clock_probe.h"
#include "proptests/harness/error.h"
#include "proptests/harness/private_directory.h"
#include "proptests/harness/server_binary.h"

namespace weir::harness {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds start_at_most{10'000};
constexpr std::size_t log_lines_told = 5;
constexpr const char* clock_name = "weir_clock.so";

// In a build tree that was moved, or where weir was installed, it stands by the program; else where it was built.
fs::path find_clock_library() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const std::array candidates{here / clock_name, here / "proptests/harness" / clock_name, fs::path{WEIR_CLOCK_LIBRARY}};
  for (const fs::path& candidate : candidates) {
    if (fs::exists(candidate)) return candidate;
  }
  throw EnvironmentError{fmt::format("{} is neither beside the program in {} nor at {}: build the target weir_clock",
                                     clock_name, here.string(), WEIR_CLOCK_LIBRARY)};
}

std::string socket_in(const fs::path& directory) {
  constexpr std::size_t longest = sizeof sockaddr_un::sun_path - 1;
  std::string path = (directory / "redis.sock").string();
  if (path.size() > longest) {
    throw EnvironmentError{
        fmt::format("the socket path {} has {} bytes, and a unix socket takes {}: set TMPDIR to a "
                    "directory with a shorter path",
                    path, path.size(), longest)};
  }
  return path;
}

std::string last_lines_of(const fs::path& log) {
  std::deque<std::string> lines;
  std::ifstream text{log};
  for (std::string line; std::getline(text, line);) {
    if (line.empty()) continue;
    lines.push_back("\n  " + line);
    if (lines.size() > log_lines_told) lines.pop_front();
  }
  std::string told;
  for (const std::string& line : lines) told += line;
  return told.empty() ? "\n  (nothing)" : told;
}

}  // namespace

struct Server::Impl {
  explicit Impl(Options given)
      : options{std::move(given)},
        socket{socket_in(directory.path())},
        log{directory.path() / "redis.log"},
        page{directory.path() / "clock", initial_instant},
        binary{find_server_binary(directory)} {
    // By a name without spaces or colons, which LD_PRELOAD would take for the end of it.
    fs::create_symlink(find_clock_library(), directory.path() / clock_name);
    start();
    Connection connection{socket, options.deadline};
    probe_clock(connection, page, binary.file.string());
  }

  [[nodiscard]] std::vector<std::string> words() const {
    const fs::path data = options.append_only ? fs::absolute(*options.append_only) : directory.path();
    const std::pair<const char*, std::string> directives[] = {
        {"port", "0"},
        {"unixsocket", socket},
        {"unixsocketperm", "700"},
        {"dir", data.string()},
        {"save", ""},
        {"appendonly", options.append_only ? "yes" : "no"},
        {"loadmodule", (directory.path() / clock_name).string()},
        {"enable-debug-command", "local"},
        {"busy-reply-threshold", std::to_string(options.busy_after.count())},
        // These two measure by the clock that we move.
        {"slowlog-log-slower-than", "-1"},
        {"latency-tracking", "no"},
        // This thread sleeps until an instant of the kernel's clock: with ours in the past it would spin.
        {"jemalloc-bg-thread", "no"},
    };
    std::vector<std::string> words{"redis-server"};
    for (const auto& [name, value] : directives) {
      words.push_back(fmt::format("--{}", name));
      words.push_back(value);
    }
    words.insert(words.end(), options.arguments.begin(), options.arguments.end());
    return words;
  }

  void start() {
    // Relative to the directory, in which the server starts: the path of TMPDIR may hold anything.
    process.emplace(ChildProcess::Program{.file = binary.file,
                                          .words = words(),
                                          .environment = {fmt::format("LD_PRELOAD=./{}", clock_name),
                                                          WEIR_CLOCK_PAGE_VARIABLE "=./clock"},
                                          .output = log},
                    directory);
    wait_until_ready();
    const Reply reply = Connection{socket, options.deadline}.run({"DEBUG", "SET-ACTIVE-EXPIRE", "0"});
    if (reply.is_error()) {
      throw EnvironmentError{fmt::format("{} refuses DEBUG SET-ACTIVE-EXPIRE: {}", binary.file.string(), reply.text)};
    }
  }

  void wait_until_ready() {
    const auto give_up = steady_clock::now() + start_at_most;
    while (true) {
      const std::string not_yet = why_not_ready();
      if (not_yet.empty()) return;
      if (!process->running()) {
        throw EnvironmentError{fmt::format("{} ended as it started, with {}; its last lines:{}", binary.file.string(),
                                           process->how_it_ended(), last_lines_of(log))};
      }
      if (steady_clock::now() > give_up) {
        throw EnvironmentError{fmt::format("{} was not ready within {} ms: {}; its last lines:{}", binary.file.string(),
                                           start_at_most.count(), not_yet, last_lines_of(log))};
      }
      std::this_thread::sleep_for(milliseconds{1});
    }
  }

  // Empty when it answers; it may listen before it has loaded its modules, or its AOF.
  [[nodiscard]] std::string why_not_ready() const {
    try {
      const Reply reply = Connection{socket, options.deadline}.run({"PING"});
      return reply.is_error() ? reply.text : "";
    } catch (const NoReply& error) {
      return error.what();
    }
  }

  // Asks it to end the script; false if it would not, or could not.
  [[nodiscard]] bool end_script() {
    try {
      const auto give_up = steady_clock::now() + options.deadline;
      Connection connection{socket, options.busy_after + options.deadline};
      const Reply killed = connection.run({"SCRIPT", "KILL"});
      if (killed.is_error() && !killed.text.starts_with("NOTBUSY")) return false;
      // It has agreed to, and does so at the script's next instructions.
      while (connection.run({"PING"}).is_error()) {
        if (steady_clock::now() > give_up) return false;
      }
      return true;
    } catch (const NoReply&) {
      return false;
    }
  }

  Options options;
  PrivateDirectory directory;
  std::string socket;
  fs::path log;
  ClockPage page;
  ServerBinary binary;
  std::optional<ChildProcess> process;
};

Server::Server(Options options) : impl_{std::make_unique<Impl>(std::move(options))} {}
Server::~Server() = default;

Connection Server::connect() const {
  return connect(impl_->options.deadline);
}
Connection Server::connect(milliseconds deadline) const {
  return Connection{impl_->socket, deadline};
}

void Server::set_clock(Instant now) {
  impl_->page.set(now);
}
Instant Server::clock() const {
  return impl_->page.now();
}
void Server::set_creep(Micros per_reading) {
  impl_->page.set_creep(per_reading);
}

const std::string& Server::socket_path() const {
  return impl_->socket;
}
const fs::path& Server::directory() const {
  return impl_->directory.path();
}
int Server::pid() const {
  return impl_->process->pid();
}
const std::string& Server::version() const {
  return impl_->binary.version;
}
bool Server::running() const {
  return impl_->process->running();
}

void Server::kill() {
  impl_->process->kill();
}

void Server::start_again() {
  kill();
  impl_->start();
}

void Server::recover_from_busy_script() {
  if (!impl_->end_script()) start_again();
}

std::chrono::microseconds Server::cpu_time() const {
  clockid_t clock{};
  timespec used{};
  if (const int cause = ::clock_getcpuclockid(pid(), &clock); cause != 0 || ::clock_gettime(clock, &used) != 0) {
    throw EnvironmentError{
        fmt::format("no CPU time of the server, process {}: {}", pid(), std::strerror(cause != 0 ? cause : errno))};
  }
  return std::chrono::seconds{used.tv_sec} +
         std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::nanoseconds{used.tv_nsec});
}

}  // namespace weir::harness
