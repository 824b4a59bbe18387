#include "proptests/harness/private_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "proptests/harness/error.h"

namespace weir::harness {
namespace {

namespace fs = std::filesystem;

// Reads the group to guard, a line each time it changes, until we are gone.
constexpr const char* guardian_script = R"(
group=
while read -r line; do group=$line; done
[ -z "$group" ] || kill -s KILL -- "-$group"
/bin/rm -rf -- "$1"
)";

/// Of a directory that is not there yet, under TMPDIR or /tmp: 64 random bits, so that it is nobody else's.
fs::path choose_path() {
  const char* given = ::getenv("TMPDIR");
  const fs::path parent = fs::absolute(given != nullptr && *given != '\0' ? given : "/tmp");
  std::uint64_t random = 0;
  if (::getentropy(&random, sizeof random) != 0) {
    throw EnvironmentError{
        fmt::format("no random number for the private server's directory: {}", std::strerror(errno))};
  }
  return parent / fmt::format("weir-{:016x}", random);
}

void make_directory(const fs::path& path) {
  if (::mkdir(path.c_str(), S_IRWXU) == 0) return;
  const int cause = errno;
  const char* given = ::getenv("TMPDIR");
  throw EnvironmentError{fmt::format(
      "cannot make a directory for the private server in {}{}: {}; set TMPDIR to a directory that can be "
      "written",
      given != nullptr && *given != '\0' ? "TMPDIR=" : "", path.parent_path().string(), std::strerror(cause))};
}

pid_t start_guardian(const fs::path& directory, int socket) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Whatever else the program has open, someone may be waiting for its end.
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawn_file_actions_addchdir_np(&files, "/");

  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);

  std::string shell = "/bin/sh";
  std::string flag = "-c";
  std::string script = guardian_script;
  std::string name = "weir-guardian";
  std::string argument = directory.string();
  const std::array words{shell.data(), flag.data(),     script.data(),
                         name.data(),  argument.data(), static_cast<char*>(nullptr)};
  pid_t pid = -1;
  const int cause = ::posix_spawn(&pid, shell.c_str(), &files, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (cause != 0) throw EnvironmentError{fmt::format("cannot start /bin/sh: {}", std::strerror(cause))};
  return pid;
}

}  // namespace

PrivateDirectory::PrivateDirectory() : path_{choose_path()} {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw EnvironmentError{fmt::format("no socket pair: {}", std::strerror(errno))};
  }
  to_guardian_ = ends[0];
  try {
    // The guardian first: from the directory's first instant on, someone outlives us who removes it.
    guardian_ = start_guardian(path_, ends[1]);
    ::close(std::exchange(ends[1], -1));
    make_directory(path_);
  } catch (...) {
    if (ends[1] >= 0) ::close(ends[1]);
    dismiss_guardian();  // what stands at that path, if anything, is not ours
    throw;
  }
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  dismiss_guardian();  // last: until here it covers us
}

void PrivateDirectory::dismiss_guardian() noexcept {
  if (guardian_ > 0) {
    ::kill(guardian_, SIGKILL);
    ::waitpid(guardian_, nullptr, 0);
  }
  ::close(to_guardian_);
}

void PrivateDirectory::guard(pid_t group) const noexcept {
  std::array<char, 24> line;
  char* end = std::to_chars(line.begin(), line.end() - 1, group).ptr;
  *end++ = '\n';
  ::send(to_guardian_, line.data(), static_cast<std::size_t>(end - line.data()), MSG_NOSIGNAL);
}

void PrivateDirectory::guard_nothing() const noexcept {
  ::send(to_guardian_, "\n", 1, MSG_NOSIGNAL);
}

}  // namespace weir::harness
