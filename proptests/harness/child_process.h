#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "proptests/harness/private_directory.h"

namespace weir::harness {

/// A program that runs in a private directory, in a process group of its own, and dies with it.
class ChildProcess {
 public:
  struct Program {
    std::filesystem::path file;            // absolute
    std::vector<std::string> words;        // argv, its name first
    std::vector<std::string> environment;  // "NAME=value": put in place of those that we have
    std::filesystem::path output;          // standard output and error are appended to it
  };

  /// Throws EnvironmentError if there can be no process. A program that cannot be executed ends at
  /// once, and says why in its output.
  ChildProcess(const Program& program, const PrivateDirectory& directory);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }

  /// False once it has ended; what it left in its group is then killed.
  [[nodiscard]] bool running();

  /// False if it still runs after this long.
  [[nodiscard]] bool wait_for_end(std::chrono::milliseconds at_most);

  /// "exit status 1", "killed by signal 9 (Killed)". Precondition: it has ended.
  [[nodiscard]] std::string how_it_ended() const;

  /// SIGKILL to the whole group, and wait. Nothing if it has ended.
  void kill();

 private:
  void reap();

  const PrivateDirectory& directory_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

}  // namespace weir::harness
