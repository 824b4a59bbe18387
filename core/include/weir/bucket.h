#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <optional>

#include "weir/decision.h"
#include "weir/detail/integer.h"
#include "weir/limit.h"
#include "weir/time.h"

namespace weir {

/// What is stored of a tenant between two requests: the units handed out and not yet refilled, the
/// instant that was true, and the (reduced) refill and period of the limit that wrote it.
///
/// Debt, not tokens: then raising a capacity or a rate never refuses a tenant whom the old limit
/// would have allowed, and an absent bucket is one without debt under every limit.
/// Thread safety: a value. Source: DESIGN, section 2.
struct Bucket {
  std::int64_t debt;  // units of the limit that wrote it, 0 to twice its capacity
  Instant as_of;
  std::int64_t refill;
  std::int64_t period_us;

  bool operator==(const Bucket&) const = default;
};

/// What a request comes to: the answer, and what is to be stored, if anything.
struct Step {
  Decision decision;

  /// Empty: store nothing, not even the same again.
  std::optional<Bucket> write;

  bool operator==(const Step&) const = default;
};

/// Decides one request. `stored` is empty where no bucket is: a full one.
///
/// Pure, exact, no clock, no allocation; any thread. `now` in [0, max_instant], and may lie before
/// `stored->as_of`: then the refill un-happens, up to a debt of twice the capacity.
/// Source: DESIGN, section 2, rules 1 to 7.
[[nodiscard]] constexpr Step decide(const Limit& limit, const std::optional<Bucket>& stored, Instant now,
                                    Cost cost) noexcept;

/// Units owed at `now` under `limit`, in its units, whatever limit wrote the bucket.
/// In [0, 2 · capacity_units()]. Rules 1 to 3.
[[nodiscard]] constexpr std::int64_t debt_at(const Limit& limit, const std::optional<Bucket>& stored,
                                             Instant now) noexcept;

/// How long a bucket with this debt must stay stored, counted from the instant the debt was true:
/// until it is full again, and one time-to-full longer, because a clock can step back over an
/// expiry. Rounded up. Rule 7.
[[nodiscard]] constexpr Micros lifetime(const Limit& limit, std::int64_t debt) noexcept {
  return Micros{detail::ceil_div(debt + limit.capacity_units(), limit.refill())};
}

[[nodiscard]] constexpr bool written_under(const Bucket& bucket, const Limit& limit) noexcept {
  return bucket.refill == limit.refill() && bucket.period_us == limit.period().count();
}

// Bodies.

namespace detail {

/// Debt after the clock moved from `as_of` to `now` at `refill` units a microsecond, within [0, most].
/// No product is formed before it is known to fit.
[[nodiscard]] constexpr std::int64_t move_time(std::int64_t debt, std::int64_t refill, Micros elapsed,
                                               std::int64_t most) noexcept {
  assert(0 <= debt && debt <= most);
  if (elapsed.count() >= 0) {
    const bool refilled = elapsed.count() >= ceil_div(debt, refill);
    return refilled ? 0 : debt - refill * elapsed.count();
  }
  const bool saturated = -elapsed.count() >= ceil_div(most - debt, refill);
  return saturated ? most : debt - refill * elapsed.count();
}

/// A debt counted in another limit's units, brought to `now` by that limit and then into ours:
/// rounded up, so that a change of plan never mints a fraction of a token.
[[nodiscard]] constexpr std::int64_t convert(const Limit& limit, const Bucket& stored, Instant now) noexcept {
  const int128 elapsed = (now - stored.as_of).count();
  const int128 owed = std::max<int128>(0, int128{stored.debt} - elapsed * stored.refill);
  // The old plan's time is not cut: owed can be 2^104. Two capacities or more come to two capacities,
  // and anything less times P' fits: it is below 2 C · P · P', where C · P' is at most 2^51.
  if (owed >= 2 * int128{limit.capacity()} * stored.period_us) return 2 * limit.capacity_units();
  return static_cast<std::int64_t>(ceil_div<int128>(owed * limit.units_per_token(), stored.period_us));
}

}  // namespace detail

constexpr std::int64_t debt_at(const Limit& limit, const std::optional<Bucket>& stored, Instant now) noexcept {
  if (!stored) return 0;
  if (!written_under(*stored, limit)) return detail::convert(limit, *stored, now);
  // Cut to this call's capacity first, then time: the other way round, the retry time told after a
  // downgrade would be false.
  const std::int64_t most = 2 * limit.capacity_units();
  return detail::move_time(std::min(stored->debt, most), limit.refill(), now - stored->as_of, most);
}

constexpr Step decide(const Limit& limit, const std::optional<Bucket>& stored, Instant now, Cost cost) noexcept {
  assert(Instant{} <= now && now <= max_instant);
  const std::int64_t full = limit.capacity_units();
  const std::int64_t unit = limit.units_per_token();
  const std::int64_t refill = limit.refill();
  const std::int64_t debt = debt_at(limit, stored, now);

  const auto answer = [&](Outcome outcome, std::int64_t owed, std::optional<Micros> retry_after) {
    return Decision{.outcome = outcome,
                    .remaining = detail::floor_div(std::max<std::int64_t>(full - owed, 0), unit),
                    .retry_after = retry_after,
                    .reset_after = Micros{detail::ceil_div(owed, refill)}};
  };
  const auto bucket = [&](std::int64_t owed) { return Bucket{owed, now, refill, unit}; };

  if (cost.tokens() > limit.capacity()) return {answer(Outcome::never, debt, std::nullopt), std::nullopt};

  const std::int64_t after = debt + cost.tokens() * unit;
  if (after <= full) {
    return {answer(Outcome::allowed, after, Micros{0}), cost.is_peek() ? std::nullopt : std::optional{bucket(after)}};
  }

  const bool clock_back = stored && now < stored->as_of;
  const bool plan_changed = stored && !written_under(*stored, limit);
  const bool writes = !cost.is_peek() && (clock_back || plan_changed);
  return {answer(Outcome::denied, debt, Micros{detail::ceil_div(after - full, refill)}),
          writes ? std::optional{bucket(debt)} : std::nullopt};
}

}  // namespace weir
