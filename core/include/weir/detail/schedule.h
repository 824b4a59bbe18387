#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <limits>

#include "weir/answer.h"
#include "weir/bucket.h"
#include "weir/limit.h"
#include "weir/time.h"

namespace weir::detail {

__extension__ using uint128 = unsigned __int128;

/// A bucket in its virtual-scheduling form: one number, the theoretical arrival time, in units
/// since an epoch. tat = base + (as_of - epoch) · n + debt, so where the clock never runs back it says
/// what the pair (debt, as_of) says, and a refill needs no write: time passes and debt shrinks.
///
/// `Units` is std::uint64_t where (horizon · n + 2 · C · P) < 2^63, else uint128, which holds every
/// limit up to `max_instant`. Either way each sum below fits: `charge` adds at most C · P to a tat
/// below 2^63 (2^127).
///
/// Immutable; pure; any thread. Source: DESIGN, section 2; STYLE, "tat".
template <class Units>
class Schedule {
 public:
  /// What a tat becomes by one request. `next` is to be stored only where `writes`.
  struct Charge {
    Answer answer;
    Units next;
    bool writes;
  };

  /// `base`: the tat that stands for no debt at the epoch.
  constexpr Schedule(const Limit& limit, Instant epoch, Units base = 0) noexcept
      : limit_(limit),
        epoch_(epoch),
        base_(base),
        horizon_us_(horizon(limit, epoch, base).count()),
        full_(limit.capacity_units()) {}

  [[nodiscard]] constexpr const Limit& limit() const noexcept { return limit_; }
  [[nodiscard]] constexpr Instant epoch() const noexcept { return epoch_; }
  [[nodiscard]] constexpr Units base() const noexcept { return base_; }

  /// The last instant this form counts; at most `max_instant`.
  [[nodiscard]] constexpr Instant last() const noexcept { return epoch_ + Micros{horizon_us_}; }

  /// How far from its epoch a limit can be counted.
  [[nodiscard]] static constexpr Micros horizon(const Limit& limit, Instant epoch, Units base = 0) noexcept {
    const std::int64_t to_the_end = (max_instant - epoch).count();
    if constexpr (sizeof(Units) > 8) {
      return Micros{to_the_end};
    } else {
      const std::int64_t room =
          std::numeric_limits<std::int64_t>::max() - 2 * limit.capacity_units() - static_cast<std::int64_t>(base);
      return Micros{std::min(to_the_end, room / limit.refill())};
    }
  }

  /// `now` as a tat: base + (now - epoch) · n. An instant before the epoch counts as the epoch: the clock is
  /// held, as at any other high-water mark. One past `last()` is held there: nothing refills any
  /// more, so nothing is over-admitted, and `past_horizon` says so.
  [[nodiscard]] constexpr Units at(Instant now) const noexcept {
    const std::int64_t elapsed = (now - epoch_).count();
    if (static_cast<std::uint64_t>(elapsed) > static_cast<std::uint64_t>(horizon_us_)) [[unlikely]] {
      return elapsed < 0 ? base_ : base_ + static_cast<Units>(horizon_us_) * refill();
    }
    return base_ + static_cast<Units>(elapsed) * refill();
  }

  [[nodiscard]] constexpr bool past_horizon(Instant now) const noexcept { return now > last(); }

  /// Units owed at `at`, 0 to twice the capacity.
  [[nodiscard]] constexpr std::int64_t debt(Units tat, Units at) const noexcept {
    if (tat <= at) return 0;
    return static_cast<std::int64_t>(std::min(tat - at, static_cast<Units>(2 * full_)));
  }

  /// One request of `cost` tokens, 0 to the capacity, that may take the debt up to `ceiling`
  /// units: the capacity, or up to twice of it for a reservation.
  [[nodiscard]] constexpr Charge charge(Units tat, Units at, std::int64_t cost, std::int64_t ceiling) const noexcept {
    assert(0 <= cost && cost <= limit_.capacity());
    const std::int64_t price = cost * limit_.units_per_token();
    const Units start = std::max(tat, at);
    const Units after = start - at + static_cast<Units>(price);
    if (after > static_cast<Units>(ceiling)) {
      const std::int64_t owed = debt(tat, at);
      return {Answer::denied_with(owed, owed + price - ceiling), tat, false};
    }
    return {Answer::allowed_with(static_cast<std::int64_t>(after)), start + static_cast<Units>(price), cost != 0};
  }

  /// `tokens` given back: the debt falls by as much, not below 0.
  [[nodiscard]] constexpr Units refunded(Units tat, Units at, std::int64_t tokens) const noexcept {
    if (tat <= at) return tat;
    const std::int64_t given = std::min(tokens, 2 * limit_.capacity());
    return tat - std::min(tat - at, static_cast<Units>(given * limit_.units_per_token()));
  }

  [[nodiscard]] constexpr std::int64_t capacity_units() const noexcept { return full_; }

  /// The most units a request may leave owed, if it is content to wait `patience` for its tokens.
  [[nodiscard]] constexpr std::int64_t ceiling(Micros patience) const noexcept {
    if (patience >= limit_.time_to_full()) return 2 * full_;
    return full_ + std::max<std::int64_t>(patience.count(), 0) * limit_.refill();
  }

 private:
  [[nodiscard]] constexpr Units refill() const noexcept { return static_cast<Units>(limit_.refill()); }

  Limit limit_;
  Instant epoch_;
  Units base_;
  std::int64_t horizon_us_;
  std::int64_t full_;  // kept: a product on each request otherwise
};

}  // namespace weir::detail
