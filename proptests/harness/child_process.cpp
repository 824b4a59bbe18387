#include "proptests/harness/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <thread>

#include "proptests/harness/error.h"

namespace weir::harness {
namespace {

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

std::vector<std::string> environment_with(std::vector<std::string> replaced) {
  const std::size_t given = replaced.size();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const auto same_name = [&](const std::string& other) { return name_of(other) == name_of(*variable); };
    if (std::none_of(replaced.begin(), replaced.begin() + static_cast<std::ptrdiff_t>(given), same_name)) {
      replaced.emplace_back(*variable);
    }
  }
  return replaced;
}

// What exec takes: pointers to the words, then a null.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ChildProcess::ChildProcess(const Program& program, const PrivateDirectory& directory) : directory_{directory} {
  std::vector<std::string> words = program.words;
  std::vector<std::string> environment = environment_with(program.environment);
  const std::vector<char*> argv = pointers_to(words);
  const std::vector<char*> envp = pointers_to(environment);
  const int input = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output = ::open(program.output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  pid_ = input < 0 || output < 0 ? -1 : ::fork();
  if (pid_ == 0) {
    // Only what is async-signal-safe, because other threads of ours may hold locks.
    ::setpgid(0, 0);
    directory.guard(::getpid());
    ::dup2(input, STDIN_FILENO);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    if (::chdir(directory.path().c_str()) == 0) ::execve(program.file.c_str(), argv.data(), envp.data());
    const char* cause = ::strerrordesc_np(errno);
    if (::write(STDERR_FILENO, cause, std::strlen(cause)) < 0) ::_exit(126);
    ::_exit(127);
  }
  const int cause = errno;
  ::close(input);
  ::close(output);
  if (pid_ < 0) {
    throw EnvironmentError{fmt::format("cannot start {}: {}", program.file.string(), std::strerror(cause))};
  }
  // Here as well as in the child, so that its group can be killed whichever of us runs first.
  ::setpgid(pid_, pid_);
}

ChildProcess::~ChildProcess() {
  kill();
}

bool ChildProcess::running() {
  siginfo_t end{};
  if (!ended_ &&
      (::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != 0)) {
    reap();
  }
  return !ended_;
}

bool ChildProcess::wait_for_end(std::chrono::milliseconds at_most) {
  const auto give_up = std::chrono::steady_clock::now() + at_most;
  while (running() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return ended_;
}

std::string ChildProcess::how_it_ended() const {
  if (WIFEXITED(status_)) return fmt::format("exit status {}", WEXITSTATUS(status_));
  return fmt::format("killed by signal {} ({})", WTERMSIG(status_), ::strsignal(WTERMSIG(status_)));
}

void ChildProcess::kill() {
  if (!ended_) reap();
}

void ChildProcess::reap() {
  // The group first: until its leader is reaped, the number is nobody else's.
  ::kill(-pid_, SIGKILL);
  ::waitpid(pid_, &status_, 0);
  ended_ = true;
  directory_.guard_nothing();
}

}  // namespace weir::harness
