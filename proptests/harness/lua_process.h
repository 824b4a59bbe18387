#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace weir::harness {

/// The child that runs the user's Lua, as the host sees it: a request, an answer, or its death.
/// Not thread safe.
class LuaProcess {
 public:
  /// Throws EnvironmentError where a process or its socket cannot be made.
  LuaProcess();
  ~LuaProcess();
  LuaProcess(const LuaProcess&) = delete;
  LuaProcess& operator=(const LuaProcess&) = delete;

  /// Why a request had no answer. The process is gone; `restart` before the next one.
  struct Death {
    bool hung;           // killed at the deadline; else it ended by itself
    std::uint32_t call;  // which call of the request it was in, from 1
    std::string how;     // "was killed by signal 11 (Segmentation fault)"
  };

  /// Sends a frame and waits for the answer. Any one call of the request may take up to `deadline` of
  /// processor time.
  /// The answer is a view that lasts until the next request.
  [[nodiscard]] std::variant<std::string_view, Death> ask(std::string_view frame, std::chrono::milliseconds deadline);

  void restart();

 private:
  void start();
  int stop();
  Death died(bool hung);
  [[nodiscard]] bool wait_for_answer(std::chrono::milliseconds deadline) const;

  std::atomic<std::uint32_t>* progress_;  // in a page shared with the child
  pid_t pid_ = -1;
  int socket_ = -1;
  std::string answer_;
};

}  // namespace weir::harness
