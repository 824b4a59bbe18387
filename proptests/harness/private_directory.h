#pragma once

#include <sys/types.h>

#include <filesystem>

namespace weir::harness {

/// A directory of our own under TMPDIR (else /tmp), and what runs in it: both are gone when this
/// process is, whatever ends it.
///
/// A guardian sees to that: a /bin/sh in a session of its own that waits for our end of a socket to
/// close (only the kernel closes it if we are killed), then kills the server's process group and
/// removes the directory. PR_SET_PDEATHSIG would do less: it fires when the *thread* that started the
/// server ends, and it removes nothing.
class PrivateDirectory {
 public:
  /// Throws EnvironmentError if none can be made there.
  PrivateDirectory();
  ~PrivateDirectory();
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Names the process group that must not outlive us. Async-signal-safe: a child says it of itself
  /// between fork and exec, so that there is no instant at which it runs unknown.
  void guard(pid_t group) const noexcept;
  void guard_nothing() const noexcept;

 private:
  void dismiss_guardian() noexcept;

  std::filesystem::path path_;
  int to_guardian_ = -1;
  pid_t guardian_ = -1;
};

}  // namespace weir::harness
