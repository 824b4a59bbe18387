#pragma once

#include <cstdint>
#include <optional>

#include "weir/decision.h"
#include "weir/time.h"

/// The exact fixed window: at most `capacity` tokens between two multiples of `period` since the
/// epoch. It yields twice the capacity in a moment, on the two sides of a boundary: its promise, and
/// its trade-off. Values and pure functions; any thread.
namespace weir::model::window {

struct Limit {
  std::int64_t capacity;  // tokens a window, at least 1
  Micros period;          // length of a window, at least 1 µs
};

/// Tokens charged to the latest window seen and to the one before it, so that a clock that steps
/// back over one boundary gains nothing. A clock that steps further finds an empty window.
struct State {
  Instant latest;  // its start
  std::int64_t count;
  std::int64_t count_before;

  bool operator==(const State&) const = default;
};

struct Dialect {
  bool charges_denied = false;
};

struct Output {
  Decision decision;
  State after;
};

[[nodiscard]] constexpr std::optional<State> init() {
  return std::nullopt;
}

[[nodiscard]] constexpr State at(const Limit& limit, const std::optional<State>& stored, Instant start) {
  const Micros moved = stored ? start - stored->latest : Micros::max();
  if (moved > limit.period || moved < -limit.period) return {start, 0, 0};
  if (moved == limit.period) return {start, 0, stored->count};
  return *stored;
}

[[nodiscard]] constexpr Output step(const Limit& limit, const std::optional<State>& stored, Instant now, Cost cost,
                                    Dialect dialect = {}) {
  const Instant start = now - now.time_since_epoch() % limit.period;
  State state = at(limit, stored, start);
  std::int64_t& count = start == state.latest ? state.count : state.count_before;
  const bool allowed = cost.tokens() <= limit.capacity - count;
  if (allowed || dialect.charges_denied) count += cost.tokens();

  const Micros rest = start + limit.period - now;
  Decision decision{.outcome = allowed ? Outcome::allowed : Outcome::denied,
                    .remaining = count < limit.capacity ? limit.capacity - count : 0,
                    .retry_after = allowed ? Micros{0} : rest,
                    .reset_after = count > 0 ? rest : Micros{0}};
  if (cost.tokens() > limit.capacity) {
    decision.outcome = Outcome::never;
    decision.retry_after = std::nullopt;
  }
  return {decision, state};
}

}  // namespace weir::model::window
