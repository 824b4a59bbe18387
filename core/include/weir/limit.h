#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

#include "weir/detail/integer.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

/// Largest capacity, refill, period (µs), cost, and capacity · period (units) there is. Twice this,
/// plus one more product, still fits 2^53: the same sums are exact in a Lua double.
/// Source: DESIGN, section 2.
inline constexpr std::int64_t max_quantity = std::int64_t{1} << 51;

/// Why three numbers are no limit, and what would be one.
struct LimitError {
  enum class Reason { capacity_out_of_range, refill_out_of_range, period_out_of_range, does_not_fit };

  Reason reason;
  std::int64_t capacity;   // as given
  std::int64_t refill;     // as given
  std::int64_t period_us;  // as given

  /// For `does_not_fit`: the largest capacity at the refill and period that were given. At least 1.
  [[nodiscard]] constexpr std::int64_t capacity_that_fits() const noexcept;

  /// For `does_not_fit`: the nearest refill at the capacity and period that were given, where one is
  /// within 1 %. Searches; not for a hot path.
  [[nodiscard]] constexpr std::optional<std::int64_t> refill_that_fits() const noexcept;

  bool operator==(const LimitError&) const = default;

  /// One sentence: what was given, the range, and the nearest limit that fits.
  [[nodiscard]] std::string message() const;
};

/// What a tenant is entitled to: at most `capacity` tokens at one instant, and `refill` tokens
/// back every `period`.
///
/// Immutable and always valid. Refill and period are kept divided by their greatest common
/// divisor, so that "2 per 2 s" and "1 per 1 s" are one limit and a change between them is none.
/// One token is `period().count()` units; a bucket refills `refill()` units each microsecond.
/// Thread safety: a value. Source: DESIGN, section 2.
class Limit {
 public:
  /// capacity and refill in tokens, 1 to 2^51; period 1 µs to 2^51 µs (71 years); and
  /// capacity · period, once reduced, within 2^51 units.
  [[nodiscard]] static constexpr Result<Limit, LimitError> make(std::int64_t capacity, std::int64_t refill,
                                                                Micros period) noexcept;

  [[nodiscard]] constexpr std::int64_t capacity() const noexcept { return capacity_; }

  /// Reduced: units that come back each microsecond.
  [[nodiscard]] constexpr std::int64_t refill() const noexcept { return refill_; }

  /// Reduced: its count is also the units in one token.
  [[nodiscard]] constexpr Micros period() const noexcept { return period_; }

  /// Units in one token.
  [[nodiscard]] constexpr std::int64_t units_per_token() const noexcept { return period_.count(); }

  /// Units in a whole bucket; at most 2^51.
  [[nodiscard]] constexpr std::int64_t capacity_units() const noexcept { return capacity_ * period_.count(); }

  /// How long an empty bucket takes to refill, rounded up; 1 µs to 2^51 µs.
  [[nodiscard]] constexpr Micros time_to_full() const noexcept {
    return Micros{detail::ceil_div(capacity_units(), refill_)};
  }

  /// Time between two tokens at the sustained rate, rounded up; at least 1 µs.
  [[nodiscard]] constexpr Micros emission_interval() const noexcept {
    return Micros{detail::ceil_div(period_.count(), refill_)};
  }

  bool operator==(const Limit&) const = default;

 private:
  constexpr Limit(std::int64_t capacity, std::int64_t refill, Micros period) noexcept
      : capacity_(capacity), refill_(refill), period_(period) {}

  std::int64_t capacity_;
  std::int64_t refill_;
  Micros period_;
};

// Bodies.

namespace detail {

[[nodiscard]] constexpr bool in_quantity_range(std::int64_t value) noexcept {
  return 1 <= value && value <= max_quantity;
}

[[nodiscard]] constexpr bool fits(std::int64_t capacity, std::int64_t refill, std::int64_t period_us) noexcept {
  return capacity <= max_quantity / (period_us / std::gcd(refill, period_us));
}

/// The refill nearest to the one given that fits, the smaller one first at equal distance:
/// a neighbour that shares a larger divisor with the period.
[[nodiscard]] constexpr std::optional<std::int64_t> nearest_refill_that_fits(std::int64_t capacity, std::int64_t refill,
                                                                             std::int64_t period_us) noexcept {
  const std::int64_t reach = std::min<std::int64_t>(refill / 100, 100'000);
  for (std::int64_t distance = 1; distance <= reach; ++distance) {
    if (fits(capacity, refill - distance, period_us)) return refill - distance;
    if (refill + distance <= max_quantity && fits(capacity, refill + distance, period_us)) return refill + distance;
  }
  return std::nullopt;
}

}  // namespace detail

constexpr Result<Limit, LimitError> Limit::make(std::int64_t capacity, std::int64_t refill, Micros period) noexcept {
  using Reason = LimitError::Reason;
  const auto refused = [&](Reason reason) { return Unexpected{LimitError{reason, capacity, refill, period.count()}}; };
  if (!detail::in_quantity_range(capacity)) return refused(Reason::capacity_out_of_range);
  if (!detail::in_quantity_range(refill)) return refused(Reason::refill_out_of_range);
  if (!detail::in_quantity_range(period.count())) return refused(Reason::period_out_of_range);

  if (!detail::fits(capacity, refill, period.count())) return refused(Reason::does_not_fit);
  const std::int64_t divisor = std::gcd(refill, period.count());
  return Limit{capacity, refill / divisor, period / divisor};
}

constexpr std::int64_t LimitError::capacity_that_fits() const noexcept {
  return max_quantity / (period_us / std::gcd(refill, period_us));
}

constexpr std::optional<std::int64_t> LimitError::refill_that_fits() const noexcept {
  return detail::nearest_refill_that_fits(capacity, refill, period_us);
}

inline std::string LimitError::message() const {
  const auto text = [](std::int64_t number) { return std::to_string(number); };
  const auto out_of_range = [&](const char* name, std::int64_t given) {
    return std::string{name} + " is " + text(given) + "; it must be a whole number from 1 to 2^51 (" +
           text(max_quantity) + ")";
  };
  switch (reason) {
    case Reason::capacity_out_of_range: return out_of_range("capacity", capacity);
    case Reason::refill_out_of_range: return out_of_range("refill", refill);
    case Reason::period_out_of_range: return out_of_range("period_us", period_us);
    case Reason::does_not_fit: break;
  }
  std::string sentence = "capacity " + text(capacity) + " refilled by " + text(refill) + " every " + text(period_us) +
                         " us does not fit: capacity * period, once refill and period are divided by their greatest "
                         "common divisor, must stay within 2^51; what fits is capacity " +
                         text(capacity_that_fits()) + " at this rate";
  if (const auto nearest = refill_that_fits()) sentence += ", or refill " + text(*nearest) + " with this capacity";
  return sentence;
}

}  // namespace weir
