#pragma once

#include <cstdint>
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

  /// The two halves of `run`: between them the server works, and so may the caller. One batch is under
  /// way at a time.
  void launch(std::vector<model::Scenario> scenarios);
  [[nodiscard]] std::vector<model::History> land();

  /// Calls that went to the server so far.
  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }

 private:
  /// One call on its way: what was sent for it, or why nothing was.
  struct Sent {
    std::optional<harness::Arguments> arguments;
    std::string refused;  // the contract's Lua would not make a command of this input
  };

  [[nodiscard]] std::vector<harness::Call> calls_of(std::span<const model::Scenario> scenarios) const;
  [[nodiscard]] std::vector<harness::Command> commands_for(Instant now, const Sent& sent) const;
  [[nodiscard]] std::vector<model::History> land_slowly();
  void observe(std::vector<model::Observation>& observations, std::span<const harness::Reply> replies);
  [[nodiscard]] model::History run_program(const model::Scenario& scenario, std::size_t serial);
  [[nodiscard]] model::Observation run_attempt(const harness::Call& call);
  void look_everywhere(model::Observation& seen);
  void read_keys(model::Observation& seen, const harness::Look& look) const;
  void reconnect();

  harness::Server& server_;
  harness::LuaHost& host_;
  harness::Connection connection_;
  std::string sha_;
  std::vector<model::Scenario> scenarios_;  // of the batch under way
  std::vector<harness::Call> batch_calls_;
  std::vector<Sent> sent_;
  std::size_t commands_in_flight_ = 0;
  std::uint64_t calls_ = 0;
};

/// The call as a contract's Lua sees it.
[[nodiscard]] harness::Call harness_call(const model::Scenario& scenario, const model::TimedCall& call, Instant now,
                                         std::string key);

}  // namespace weir::gate
