#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "weir/decision.h"
#include "weir/detail/integer.h"
#include "weir/limit.h"
#include "weir/time.h"

namespace weir {

/// The answer to one request as the two numbers it was decided on.
///
/// A `Decision` costs two to three divisions, more than the decision itself; most callers only ask
/// `allowed()`. So an in-process limiter hands back this, in two registers, and the rest is
/// computed by whoever wants it, from the limit the request was decided under.
///
///     const Answer answer = bucket.acquire(now);
///     if (!answer.allowed()) return too_many_requests(*answer.retry_after(bucket.limit()));
///
/// Thread safety: a value. Source: DESIGN, section 2, rule 6.
class Answer {
 public:
  /// `debt` in units after the request, 0 to twice the capacity.
  [[nodiscard]] static constexpr Answer allowed_with(std::int64_t debt) noexcept { return {debt, 0}; }

  /// `debt` unchanged by the request; `excess` > 0 is what it would have had too much.
  [[nodiscard]] static constexpr Answer denied_with(std::int64_t debt, std::int64_t excess) noexcept {
    return {debt, excess};
  }

  [[nodiscard]] static constexpr Answer never_with(std::int64_t debt) noexcept { return {debt, no_wait_helps}; }

  [[nodiscard]] constexpr bool allowed() const noexcept { return excess_ == 0; }

  [[nodiscard]] constexpr Outcome outcome() const noexcept {
    if (excess_ == 0) return Outcome::allowed;
    return excess_ == no_wait_helps ? Outcome::never : Outcome::denied;
  }

  /// Units owed after the request, 0 to twice the capacity.
  [[nodiscard]] constexpr std::int64_t debt() const noexcept { return debt_; }

  /// Whole tokens left after the request, rounded down; 0 to capacity.
  [[nodiscard]] constexpr std::int64_t remaining(const Limit& limit) const noexcept {
    return detail::floor_div(std::max<std::int64_t>(limit.capacity_units() - debt_, 0), limit.units_per_token());
  }

  /// As `Decision::retry_after`: zero when allowed, empty when no wait helps, rounded up.
  [[nodiscard]] constexpr std::optional<Micros> retry_after(const Limit& limit) const noexcept {
    if (excess_ == no_wait_helps) return std::nullopt;
    return Micros{detail::ceil_div(excess_, limit.refill())};
  }

  /// Time until the bucket is full again, rounded up.
  [[nodiscard]] constexpr Micros reset_after(const Limit& limit) const noexcept {
    return Micros{detail::ceil_div(debt_, limit.refill())};
  }

  /// For a reservation that was made: how long to wait before acting on it, rounded up. Zero for
  /// an allowed `acquire`, whose debt is within the capacity.
  [[nodiscard]] constexpr Micros wait(const Limit& limit) const noexcept {
    return Micros{detail::ceil_div(std::max<std::int64_t>(debt_ - limit.capacity_units(), 0), limit.refill())};
  }

  [[nodiscard]] constexpr Decision decision(const Limit& limit) const noexcept {
    return {outcome(), remaining(limit), retry_after(limit), reset_after(limit)};
  }

  bool operator==(const Answer&) const = default;

 private:
  static constexpr std::int64_t no_wait_helps = -1;

  constexpr Answer(std::int64_t debt, std::int64_t excess) noexcept : debt_(debt), excess_(excess) {}

  std::int64_t debt_;
  std::int64_t excess_;  // units; 0 allowed, > 0 denied by so many, no_wait_helps
};

}  // namespace weir
