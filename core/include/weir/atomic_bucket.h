#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "weir/answer.h"
#include "weir/bucket.h"
#include "weir/detail/cell.h"
#include "weir/detail/schedule.h"
#include "weir/limit.h"
#include "weir/time.h"

namespace weir {

/// How far from its epoch a bucket must at least be able to count: 30 years of 365.25 days.
inline constexpr Micros least_horizon{std::int64_t{30} * 31'557'600 * 1'000'000};

/// Whether one 64-bit word holds buckets of this limit for `least_horizon`: refill · 30 years +
/// 2 · capacity · period < 2^63 in the reduced numbers, so a refill of up to 9,000 or so. 173 of 188
/// limits that people choose fit; 123,457 a second does not.
[[nodiscard]] constexpr bool fits_one_word(const Limit& limit) noexcept {
  return detail::Schedule<std::uint64_t>::horizon(limit, Instant{}) >= least_horizon;
}

/// One bucket in memory that threads share: one limit, one number, no lock.
///
///     AtomicBucket bucket{limit, clock.now()};
///     if (bucket.acquire(clock.now()).allowed()) serve();
///
/// Its decisions are `decide()`'s, number for number, as long as `now` does not run back. The
/// state is the bucket's theoretical arrival time alone, so an `allowed` is a load and a
/// compare-and-swap, a denial is a load (it stores nothing and leaves the cache line shared: any
/// number of threads is denied at full speed), and a refill is nothing at all.
///
/// A `now` earlier than another thread's is harmless: it is answered as if the refill in between
/// had not happened, which at most refuses. A clock that is thrown back by an hour would refuse for
/// an hour, though: hold such a clock with `HeldClock`.
///
/// The first instant it can count is its epoch (an earlier one is held there), the last is `last()`:
/// past it every request is answered `never`, since nothing refills any more.
///
/// Thread safety: any thread, lock-free, except `ConfinedBucket`s: one thread at a time.
/// Source: DESIGN, sections 2 and 6. Errors: the constructor's only.
template <class Cell>
class BasicBucket {
 public:
  using Units = typename Cell::Units;

  /// A full bucket. `epoch`: no later than the first `now`. Throws std::invalid_argument where the
  /// cell does not hold this limit for 30 years; the wide ones hold every limit.
  BasicBucket(const Limit& limit, Instant epoch) : schedule_(checked(limit, epoch), epoch), cell_(Units{0}) {}

  /// A bucket that goes on from a stored one, under whatever limit that was written.
  BasicBucket(const Limit& limit, const Bucket& stored, Instant now)
      : schedule_(checked(limit, now), now), cell_(static_cast<Units>(debt_at(limit, stored, now))) {}

  BasicBucket(const BasicBucket&) = delete;
  BasicBucket& operator=(const BasicBucket&) = delete;

  /// Takes `cost` tokens, or refuses and takes nothing.
  [[nodiscard]] Answer acquire(Instant now, Cost cost = one_token) noexcept {
    return take(now, cost, schedule_.capacity_units());
  }

  /// What `acquire(now, cost)` would be answered if it took nothing. Stores nothing.
  [[nodiscard]] Answer look(Instant now, Cost cost = peek) const noexcept {
    const Units at = schedule_.at(now);
    const Units tat = cell_.load();
    if (never(now, cost)) return Answer::never_with(schedule_.debt(tat, at));
    return schedule_.charge(tat, at, cost.tokens(), schedule_.capacity_units()).answer;
  }

  /// Takes `cost` tokens that may not be there yet, to be acted on after `Answer::wait`: refused
  /// where that wait were longer than `patience`, or the debt past twice the capacity. Reservations
  /// wait in the order they were made; an `acquire` cannot pass them.
  [[nodiscard]] Answer reserve(Instant now, Cost cost, Micros patience) noexcept {
    return take(now, cost, schedule_.ceiling(patience));
  }

  /// Gives `tokens` back: of a request that was allowed and not sent, or a reservation not used. The debt falls by as
  /// much, not below 0.
  void refund(Instant now, Cost tokens) noexcept {
    const Units at = schedule_.at(now);
    Units tat = cell_.load();
    while (tat > at && !cell_.replace(tat, schedule_.refunded(tat, at, tokens.tokens()))) {
    }
  }

  /// The bucket as it is stored elsewhere: to be handed to another limit, or to Redis.
  [[nodiscard]] Bucket state(Instant now) const noexcept {
    return {schedule_.debt(cell_.load(), schedule_.at(now)), now, limit().refill(), limit().period().count()};
  }

  [[nodiscard]] const Limit& limit() const noexcept { return schedule_.limit(); }
  [[nodiscard]] Instant last() const noexcept { return schedule_.last(); }

 private:
  using Schedule = detail::Schedule<Units>;

  static const Limit& checked(const Limit& limit, Instant epoch) {
    if (sizeof(Units) == 8 && Schedule::horizon(limit, epoch) < std::min(least_horizon, max_instant - epoch)) {
      throw std::invalid_argument("a limit that refills " + std::to_string(limit.refill()) +
                                  " units a microsecond (reduced) cannot be counted in 64 bits for 30 years; use a "
                                  "WideAtomicBucket or WideConfinedBucket, which hold every limit");
    }
    return limit;
  }

  [[nodiscard]] bool never(Instant now, Cost cost) const noexcept {
    return cost.tokens() > limit().capacity() || schedule_.past_horizon(now);
  }

  [[nodiscard]] Answer take(Instant now, Cost cost, std::int64_t ceiling) noexcept {
    const Units at = schedule_.at(now);
    Units tat = cell_.load();
    if (never(now, cost)) [[unlikely]]
      return Answer::never_with(schedule_.debt(tat, at));
    for (;;) {
      const auto charge = schedule_.charge(tat, at, cost.tokens(), ceiling);
      if (!charge.writes || cell_.replace(tat, charge.next)) return charge.answer;
    }
  }

  // Apart from the word: readers of the limit are not disturbed by writers of the debt.
  alignas(64) Schedule schedule_;
  alignas(64) Cell cell_;
};

/// For limits that fit one word (`fits_one_word`).
using AtomicBucket = BasicBucket<detail::AtomicCell<detail::StdAtomics>>;

/// For every limit: 16 bytes, swapped at once.
using WideAtomicBucket = BasicBucket<detail::WideAtomicCell>;

/// For one thread at a time, as in a thread-per-core server: the same arithmetic without atomics.
using ConfinedBucket = BasicBucket<detail::PlainCell<std::uint64_t>>;
using WideConfinedBucket = BasicBucket<detail::PlainCell<detail::uint128>>;

}  // namespace weir
