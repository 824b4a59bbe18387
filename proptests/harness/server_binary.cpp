#include "proptests/harness/server_binary.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#include "proptests/harness/child_process.h"
#include "proptests/harness/error.h"

namespace weir::harness {
namespace {

namespace fs = std::filesystem;

using Version = std::array<int, 3>;

// The first with DEBUG behind a directive, PEXPIRETIME, functions, and a monotonic clock that INFO names.
constexpr Version oldest{7, 0, 0};

bool is_program(const fs::path& file) {
  return fs::is_regular_file(file) && ::access(file.c_str(), X_OK) == 0;
}

std::optional<fs::path> find_on_path(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::istringstream directories{path != nullptr ? path : "/usr/bin:/bin"};
  for (std::string directory; std::getline(directories, directory, ':');) {
    const fs::path file = fs::absolute(directory) / name;
    if (is_program(file)) return file;
  }
  return std::nullopt;
}

fs::path find_file() {
  if (const char* given = std::getenv("WEIR_REDIS_SERVER"); given != nullptr && *given != '\0') {
    if (!is_program(given)) {
      throw EnvironmentError{fmt::format("WEIR_REDIS_SERVER={}: {}; it must be the path of a redis-server binary",
                                         given, fs::exists(given) ? "is not an executable file" : "no such file")};
    }
    return fs::absolute(given);
  }
  for (const std::string_view name : {"redis-server", "redis-check-rdb"}) {
    if (const auto file = find_on_path(name)) return *file;
  }
  throw EnvironmentError{
      "no redis-server on the PATH: install the Debian package redis-tools (the program without a service) or "
      "redis-server, or set WEIR_REDIS_SERVER to the path of a redis-server binary"};
}

std::string what_it_calls_itself(const fs::path& file, const PrivateDirectory& directory) {
  const fs::path output = directory.path() / "version";
  ChildProcess program{{.file = file, .words = {"redis-server", "--version"}, .environment = {}, .output = output},
                       directory};
  const bool ended = program.wait_for_end(std::chrono::seconds{5});
  program.kill();
  std::ifstream text{output};
  std::string line;
  std::getline(text, line);
  return ended ? line : fmt::format("{} (and did not end within 5 s)", line);
}

}  // namespace

ServerBinary find_server_binary(const PrivateDirectory& directory) {
  const fs::path file = find_file();
  // "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64 build=..."; Valkey says it alike.
  const std::string line = what_it_calls_itself(file, directory);
  const std::size_t mark = line.find(" server v=");
  Version version{};
  if (mark == std::string::npos ||
      std::sscanf(line.c_str() + mark, " server v=%d.%d.%d", &version[0], &version[1], &version[2]) != 3) {
    throw EnvironmentError{fmt::format("{} is not a redis-server: --version answers \"{}\", not \"Redis server v=...\"",
                                       file.string(), line)};
  }
  const auto [major, minor, patch] = version;
  if (version < oldest) {
    throw EnvironmentError{
        fmt::format("{} is Redis {}.{}.{}: 7.0.0 or later is needed", file.string(), major, minor, patch)};
  }
  return {.file = file, .version = fmt::format("{}.{}.{}", major, minor, patch)};
}

}  // namespace weir::harness
