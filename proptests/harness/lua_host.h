#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "proptests/harness/contract.h"
#include "proptests/harness/reply.h"

namespace weir::harness {

/// A number as a caller would write it; text, because bad input has no other form ("-1", "1.5",
/// "nan", "1e300", "abc", ""). Whole numbers in range are canonical decimal.
/// Lua sees a number where tonumber() reads one, else the string.
using Quantity = std::string;

/// One call of a limiter, as `keys`, `args` and `take` see it.
struct Call {
  std::string key;          // call.key: the tenant
  Quantity capacity;        // call.limit.capacity
  Quantity refill;          // call.limit.refill
  Quantity period_us;       // call.limit.period_us
  Quantity cost;            // call.cost
  std::int64_t now_us = 0;  // call.now_us: the client's own clock
  int client = 0;           // call.client: 1, 2, ...
  bool operator==(const Call&) const = default;
};

/// What the limiter answered, as `reply` (or the return value of `take`) reads it. Times in the
/// contract's resolution, converted to µs here.
struct Answer {
  bool allowed = false;
  std::optional<std::int64_t> retry_after_us;  // empty: not told
  bool never = false;                          // retry_after told as negative: for ever
  std::optional<std::int64_t> remaining;
  std::optional<std::int64_t> reset_after_us;
  bool operator==(const Answer&) const = default;
};

/// Why there is no answer: the user's Lua raised, returned the wrong shape, or did not end in time.
struct Refusal {
  enum class Kind { raised, wrong_shape, deadline };
  Kind kind;
  std::string message;  // file and line where Lua gives them
};

/// KEYS and ARGV of one EVALSHA.
struct Arguments {
  std::vector<std::string> keys;
  std::vector<std::string> args;
};

/// What a client program does next: commands that go out as one write (one step), or its answer.
struct Send {
  std::vector<Command> commands;
  bool pipelined = false;  // redis.pipeline{...}: the replies come back as one array
};
using Move = std::variant<Send, Answer, Refusal>;

/// Runs a contract's Lua (LuaJIT) in a child process without os, io, ffi, debug, package, or
/// anything that reaches outside; killed when one request takes longer than the deadline, and then
/// started again by itself. Not thread safe. One contract, one host.
class LuaHost {
 public:
  /// Loads and checks the contract. Throws ContractError naming file, line, field, and what was expected.
  LuaHost(const std::filesystem::path& contract, std::chrono::milliseconds deadline = std::chrono::seconds{2});
  ~LuaHost();
  LuaHost(LuaHost&&) noexcept;

  [[nodiscard]] const Contract& contract() const;

  // A script: many calls a round trip to the child, because a million decisions go this way.
  [[nodiscard]] std::vector<std::variant<Arguments, Refusal>> arguments(std::span<const Call> calls);
  [[nodiscard]] std::vector<std::variant<Answer, Refusal>> answers(std::span<const Reply> replies);

  // A client program: one coroutine per attempt, known by the caller's number for it. Each move runs
  // the program up to its next redis.call or redis.pipeline, or to its end.
  [[nodiscard]] Move begin(int attempt, const Call& call);
  [[nodiscard]] Move resume(int attempt, const Reply& reply);
  void forget(int attempt);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::harness
