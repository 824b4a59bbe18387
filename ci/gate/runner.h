#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "model/history.h"
#include "model/scenario.h"
#include "proptests/harness/connection.h"
#include "proptests/harness/lua_host.h"
#include "proptests/harness/server.h"

namespace weir::gate {

/// Runs scenarios against the limiter of one contract on the real server, and says what was seen.
/// Not thread safe. Throws harness::EnvironmentError where the server is at fault, ContractError where
/// the script cannot be loaded.
class Runner {
 public:
  Runner(harness::Server& server, harness::LuaHost& host);

  /// Each scenario on fresh buckets; as many as are given down one pipeline.
  [[nodiscard]] std::vector<model::History> run(std::span<const model::Scenario> scenarios);

  /// The two halves of `run`: between them the server works, and so may the caller. Several batches may
  /// be under way, so that the server need not wait for a judge; they land in the order of launching.
  void launch(std::vector<model::Scenario> scenarios);
  [[nodiscard]] std::vector<model::History> land();
  [[nodiscard]] std::size_t under_way() const noexcept { return batches_.size(); }

  /// Calls that went to the server so far.
  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }

 private:
  /// One call on its way: what was sent for it, or why nothing was.
  struct Sent {
    Instant now;
    std::optional<harness::Arguments> arguments;
    std::string refused;  // the contract's Lua would not make a command of this input
  };
  struct Batch {
    std::vector<model::Scenario> scenarios;
    std::vector<Sent> sent;    // a call each; none of a client program, which goes step by step
    std::size_t commands = 0;  // and as many replies
  };

  [[nodiscard]] std::vector<harness::Call> calls_of(std::span<const model::Scenario> scenarios) const;
  [[nodiscard]] std::vector<harness::Command> commands_for(const Sent& sent) const;
  [[nodiscard]] std::vector<model::History> land_slowly(Batch batch);
  void send(Batch& batch);
  void observe(std::vector<model::Observation>& observations, std::span<const Sent> sent,
               std::span<const harness::Reply> replies);
  [[nodiscard]] model::History run_program(const model::Scenario& scenario, std::size_t serial);
  [[nodiscard]] model::Observation run_attempt(const harness::Call& call);
  void look_everywhere(model::Observation& seen);
  void read_keys(model::Observation& seen, const harness::Look& look) const;
  void reconnect();

  harness::Server& server_;
  harness::LuaHost& host_;
  harness::Connection connection_;
  std::string sha_;
  std::deque<Batch> batches_;  // under way
  std::uint64_t calls_ = 0;
};

/// The call as a contract's Lua sees it.
[[nodiscard]] harness::Call harness_call(const model::Scenario& scenario, const model::TimedCall& call, Instant now,
                                         std::string key);

}  // namespace weir::gate
