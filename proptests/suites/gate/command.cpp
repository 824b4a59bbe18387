#include "proptests/suites/gate/command.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <thread>

namespace weir::suites {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

[[noreturn]] void become(const Command& command, const fs::path& out, const fs::path& err) {
  const int to_out = ::open(command.output.value_or(out).c_str(), O_WRONLY | O_CREAT, 0600);
  const int to_err = ::open(err.c_str(), O_WRONLY | O_CREAT, 0600);
  ::dup2(to_out, STDOUT_FILENO);
  ::dup2(to_err, STDERR_FILENO);
  if (::chdir(command.directory.c_str()) != 0) ::_exit(126);
  ::setenv("TMPDIR", (command.directory / "tmp").c_str(), 1);
  for (const auto& [name, value] : command.environment)
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  std::vector<std::string> words{WEIR_BINARY};
  words.insert(words.end(), command.words.begin(), command.words.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(WEIR_BINARY, pointers.data());
  ::_exit(127);
}

std::set<pid_t> children() {
  std::set<pid_t> found;
  for (const auto& thread : fs::directory_iterator{"/proc/self/task"}) {
    std::ifstream in{thread.path() / "children"};
    found.insert(std::istream_iterator<pid_t>{in}, {});
  }
  return found;
}

/// True once we have no children but these; false if there still are others after ten seconds.
bool all_others_end(const std::set<pid_t>& ours) {
  for (int tries = 0; tries < 1'000; ++tries) {
    bool left = false;
    for (const pid_t child : children())
      left = left || (!ours.contains(child) && ::waitpid(child, nullptr, WNOHANG) == 0);
    if (!left) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return false;
}

}  // namespace

Ran weir(const Command& command) {
  // What loses its parent becomes a child of ours, and cannot hide.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const fs::path temporary = command.directory / "tmp";
  fs::create_directories(temporary);
  const fs::path out = command.directory / "stdout";
  const fs::path err = command.directory / "stderr";
  fs::remove(out);
  fs::remove(err);

  const std::set<pid_t> before = children();  // a server that the test itself runs
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("no process can be started");
  if (pid == 0) become(command, out, err);
  if (command.meanwhile) command.meanwhile(pid);
  int status = 0;
  ::waitpid(pid, &status, 0);

  Ran ran;
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.left_processes = !all_others_end(before);
  ran.left_files = !fs::is_empty(temporary);
  ran.out = text_of(out);
  ran.err = text_of(err);
  return ran;
}

}  // namespace weir::suites
