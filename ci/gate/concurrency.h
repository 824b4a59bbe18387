#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ci/gate/domain.h"
#include "model/scenario.h"
#include "model/verdict.h"
#include "proptests/harness/interleaver.h"
#include "proptests/harness/lua_host.h"
#include "proptests/harness/schedule.h"
#include "proptests/harness/server.h"

namespace weir::gate {

/// Clients that overlap, as data: each makes `attempts` calls of one token on one key under one limit,
/// in the order of steps that the schedule gives. The clock is held.
struct Interleaving {
  Instant start;
  model::Plan plan;
  int clients = 2;
  int attempts = 1;
  harness::Schedule schedule;

  bool operator==(const Interleaving&) const = default;
};

/// What an interleaving came to, and what is wrong with that.
struct InterleavingRun {
  harness::History history;
  std::int64_t admitted = 0;
  std::optional<model::Failure> failure;
};

/// Runs it on a real server. The same instant for all calls, so that what is right is one number:
/// as many are admitted as there are tokens, never more, and not fewer if that many asked.
[[nodiscard]] InterleavingRun run_interleaving(harness::Interleaver& interleaver, const Interleaving& interleaving);

/// A column a client, a line a step.
[[nodiscard]] std::string interleaving_text(const Interleaving& interleaving, const InterleavingRun& run);

/// The nearest order that passes: one step moved to another place, as little as possible.
struct PassingMove {
  std::size_t step;    // from 0
  std::size_t beside;  // the step that it would have to run before, or after
  bool before;
  harness::Schedule schedule;
};
[[nodiscard]] std::optional<PassingMove> nearest_passing(harness::Interleaver& interleaver,
                                                         const Interleaving& failing);

/// How much was looked at, and the smallest interleaving that fails, if one does.
struct ConcurrencyResult {
  std::optional<Interleaving> failing;
  bool certified = false;  // every smaller interleaving was run, and passed
  std::uint64_t interleavings = 0;
  std::uint64_t decisions = 0;
  std::uint64_t parallel_takes = 0;
  std::uint64_t parallel_admitted = 0;
  std::uint64_t parallel_capacity = 0;
  std::uint64_t most_in_flight = 0;
  std::string all_of;     // sizes of which every interleaving was run: "2x1, 3x1, 2x2"
  std::string random_of;  // and of which random ones were
};

/// Every interleaving of small scopes in growing order, then random ones, uniformly, past them; the
/// first that fails is the smallest. Then, where the limiter is a script, real threads running free.
/// `between` may throw to stop.
[[nodiscard]] ConcurrencyResult judge_concurrency(harness::Server& server, harness::LuaHost& host, const Domain& domain,
                                                  std::uint64_t seed,
                                                  const std::function<void(std::uint64_t)>& between);

}  // namespace weir::gate
