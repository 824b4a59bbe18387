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
  int attempt = 0;          // call.attempt: 1, 2, ... of that client; then math.random is a function of the call
  bool operator==(const Call&) const = default;
};

/// What the limiter answered, as `reply` (or the return value of `take`) reads it: a table with
/// `allowed`, and optionally `remaining`, `retry_after_us` or `_ms` or `_s`, `reset_after_us` or `_ms` or `_s`.
/// Times become whole µs here; a field of another name, or a time that is not a whole µs, is refused.
struct Answer {
  bool allowed = false;
  std::optional<std::int64_t> retry_after_us;  // empty: not told
  bool never = false;                          // retry_after told as negative: for ever
  std::optional<std::int64_t> remaining;
  std::optional<std::int64_t> reset_after_us;
  bool operator==(const Answer&) const = default;
};

/// Why there is no answer: the user's Lua raised (or ran out of memory, or took its process down),
/// returned the wrong shape, or did not end in time.
struct Refusal {
  enum class Kind : std::uint8_t { raised, wrong_shape, deadline };
  Kind kind;
  std::string message;  // file and line where Lua gives them
  bool operator==(const Refusal&) const = default;
};

/// KEYS and ARGV of one EVALSHA.
struct Arguments {
  std::vector<std::string> keys;
  std::vector<std::string> args;
  bool operator==(const Arguments&) const = default;
};

/// What a client program does next: commands that go out as one write (one step), or its answer.
struct Send {
  std::vector<Command> commands;
  bool pipelined = false;  // redis.pipeline{...}: the replies come back as one array
  bool operator==(const Send&) const = default;
};
using Move = std::variant<Send, Answer, Refusal>;

/// Runs a contract's Lua (LuaJIT) in a child process without os, io, ffi, debug, package, or
/// anything that reaches outside; killed when one call takes longer than the deadline (of processor
/// time), and then started again by itself. A process and not a count hook, because no hook fires in a compiled loop.
///
/// The user's Lua is to be a function of what it is given. math.random is one where `Call::attempt` is
/// told; state kept in upvalues lasts as long as the process; the order of pairs() differs between processes.
///
/// Not thread safe. One contract, one host. Forks: start no thread that must not be copied before it.
/// The child ends when the thread that started it does.
class LuaHost {
 public:
  /// Loads and checks the contract. Throws ContractError naming file, line, field, and what was expected;
  /// EnvironmentError where no process can be started.
  LuaHost(const std::filesystem::path& contract, std::chrono::milliseconds deadline = std::chrono::seconds{2});
  ~LuaHost();
  LuaHost(LuaHost&&) noexcept;

  /// As the file says; and which optional fields of an Answer have been seen so far.
  [[nodiscard]] const Contract& contract() const;

  // A script: many calls a round trip to the child, because a million decisions go this way. A call
  // that hangs is refused and the others are asked again; after three of them in one batch the rest
  // is refused unasked.
  [[nodiscard]] std::vector<std::variant<Arguments, Refusal>> arguments(std::span<const Call> calls);

  /// An error reply is the limiter's, not an answer: do not ask. (Inside an array, Lua sees { err = "..." }.)
  [[nodiscard]] std::vector<std::variant<Answer, Refusal>> answers(std::span<const Reply> replies);

  // A client program: one coroutine per attempt, known by the caller's number for it. Each move runs
  // the program up to its next redis.call or redis.pipeline, or to its end. An attempt outlives the
  // child: after another one hung, it is brought to where it was from the replies it has seen.
  [[nodiscard]] Move begin(int attempt, const Call& call);
  [[nodiscard]] Move resume(int attempt, const Reply& reply);

  /// `begin` and as many `resume` as there are replies, in one round trip; the last move.
  [[nodiscard]] Move replay(int attempt, const Call& call, std::span<const Reply> replies);

  /// Frees an attempt that has not ended; one that has is free already.
  void forget(int attempt);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::harness
