#include "proptests/harness/lua_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>

#include "proptests/harness/error.h"
#include "proptests/harness/lua_child.h"

namespace weir::harness {
namespace {

[[noreturn]] void cannot(const char* what) {
  throw EnvironmentError(std::string{"cannot start the process that runs a contract's Lua: "} + what + ": " +
                         std::strerror(errno));
}

void limit(__rlimit_resource what, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(what, &both);
}

/// What the child keeps of us: one socket and a place to print to. It can open no file, connect
/// nowhere, start nothing, and does not outlive us.
[[noreturn]] void become_lua_child(pid_t parent, int socket, std::atomic<std::uint32_t>& progress) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C reaches the whole group; what it means is for the parent to say.
  ::signal(SIGXFSZ, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  constexpr int kept = 3;
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // print() must not mix with what the gate prints
  ::dup2(socket, kept);
  ::close_range(kept + 1, ~0U, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_NPROC, 0);
  run_lua_child(kept, progress, [] { limit(RLIMIT_NOFILE, kept + 1); });
}

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return "ended with status " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
}

}  // namespace

LuaProcess::LuaProcess() {
  void* const page = ::mmap(nullptr, sizeof *progress_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) cannot("mmap");
  progress_ = new (page) std::atomic<std::uint32_t>{0};
  start();
}

LuaProcess::~LuaProcess() {
  stop();
  ::munmap(progress_, sizeof *progress_);
}

void LuaProcess::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) cannot("socketpair");
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become_lua_child(parent, ends[1], *progress_);
  ::close(ends[1]);
  socket_ = ends[0];
  if (pid_ < 0) cannot("fork");
}

/// Its exit status.
int LuaProcess::stop() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  int status = 0;
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  return status;
}

void LuaProcess::restart() {
  stop();
  start();
}

LuaProcess::Death LuaProcess::died(bool hung) {
  const std::uint32_t call = *progress_;
  if (!hung) {
    // It closed its end, so it is ending by itself; a SIGKILL now would hide how.
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    stop();
    return {false, call, how_it_ended(status)};
  }
  return {true, call, how_it_ended(stop())};
}

/// False when one call took longer than the deadline, of the child's own processor time: on a busy
/// machine a call that waits its turn is not one that hangs. (It has nothing else to wait for; ten
/// deadlines on the wall are for a child that was stopped.) Progress is looked at eight times a deadline.
bool LuaProcess::wait_for_answer(std::chrono::milliseconds deadline) const {
  using std::chrono::steady_clock;
  clockid_t childs_clock;
  const bool has_clock = ::clock_getcpuclockid(pid_, &childs_clock) == 0;
  const auto childs_time = [&] {
    timespec time{};
    if (has_clock) ::clock_gettime(childs_clock, &time);
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
  };
  const auto slice = std::max<std::int64_t>(deadline.count() / 8, 1);
  std::uint32_t call = *progress_;
  auto used = childs_time();
  auto since = steady_clock::now();
  for (;;) {
    pollfd waiting{socket_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(slice));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) cannot("poll");
    if (*progress_ != call) {
      call = *progress_;
      used = childs_time();
      since = steady_clock::now();
    } else if (childs_time() - used >= deadline || steady_clock::now() - since >= 10 * deadline) {
      return false;
    }
  }
}

std::variant<std::string_view, LuaProcess::Death> LuaProcess::ask(std::string_view frame,
                                                                  std::chrono::milliseconds deadline) {
  *progress_ = 0;
  while (!frame.empty()) {
    const ssize_t sent = ::send(socket_, frame.data(), frame.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return died(false);
    frame.remove_prefix(static_cast<std::size_t>(sent));
  }

  const auto receive = [&](char* bytes, std::size_t size) {
    while (size > 0) {
      const ssize_t got = ::recv(socket_, bytes, size, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      bytes += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  };
  std::uint32_t size = 0;
  if (!wait_for_answer(deadline)) return died(true);
  if (!receive(reinterpret_cast<char*>(&size), sizeof size)) return died(false);
  answer_.resize(size);
  if (!receive(answer_.data(), size)) return died(false);
  return std::string_view{answer_};
}

}  // namespace weir::harness
