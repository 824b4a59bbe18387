#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "model/scenario.h"

namespace weir::model {

/// Whether each of these scenarios still fails in the way that is pinned. Many at a time, because one
/// round trip to Redis answers for all of them.
using Fails = std::function<std::vector<bool>(std::span<const Scenario>)>;

/// What a scenario may be made of while it shrinks.
struct Grain {
  std::int64_t tick_us = 1;         // the clock moves in whole ticks
  std::int64_t least_capacity = 1;  // of a valid plan; bad input shrinks within bad input
  std::int64_t least_refill = 1;
  std::int64_t least_period_us = 1;
  std::int64_t least_cost = 0;
  Instant start;  // where a scenario begins that does not care when
};

/// The order that "smaller" means, a total one: fewer calls, tenants, plans, moves of the clock; then
/// smaller limits, costs and times. Two failures that shrink to one scenario are one bug.
[[nodiscard]] bool simpler(const Scenario& left, const Scenario& right);

struct Shrunk {
  Scenario scenario;
  std::size_t runs = 0;  // scenarios that were run
  bool gave_up = false;  // the budget ran out before nothing helped any more
};

/// Makes a failing scenario smaller until no move does: whole tenants, blocks of calls (later times
/// kept, or the gaps kept), single calls, two calls into one, plans, costs, times to their exact
/// boundary. Only ever to simpler ones, so it ends. Deterministic.
/// Source: the measurements behind the order of moves are in model/README.md.
[[nodiscard]] Shrunk shrink(Scenario failing, const Grain& grain, const Fails& fails, std::size_t most_runs);

/// Every scenario of at most `most_calls` calls over a small scope, in the order of `simpler` by calls:
/// the first that fails is the smallest there is.
struct Scope {
  std::vector<Plan> plans;  // one plan at a time, unless the failure needs a change of plan
  bool plan_changes = false;
  bool tenants = false;
  bool clock_back = false;
  std::vector<Quantity> bad_costs;  // tried beside the valid ones
  std::size_t most_calls = 4;
};
struct Searched {
  std::optional<Scenario> found;
  std::size_t runs = 0;
  bool complete = false;  // all of the scope that is simpler than `below` was run
};
[[nodiscard]] Searched search_below(const Scenario& below, const Scope& scope, const Grain& grain, const Fails& fails,
                                    std::size_t most_runs);

/// Without plans that no call uses, tenants numbered by first appearance.
[[nodiscard]] Scenario canonical(Scenario scenario);

}  // namespace weir::model
