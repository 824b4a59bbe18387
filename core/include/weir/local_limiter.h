#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "weir/answer.h"
#include "weir/atomic_bucket.h"
#include "weir/clock.h"
#include "weir/detail/bucket_table.h"
#include "weir/detail/pages.h"
#include "weir/keyed_hash.h"
#include "weir/limit.h"
#include "weir/time.h"

namespace weir {

/// What becomes of a request whose bucket finds no room, because every slot it could have holds a
/// bucket that is not full. There is no right answer, so it has to be chosen: `deny` refuses keys that are
/// new (an attacker with enough keys locks newcomers out), `admit` lets them pass uncharged (he
/// gets himself unlimited). Either is counted.
enum class WhenFull { deny, admit };

struct LocalLimiterOptions {
  /// Buckets that are to be not full at one time: about the different keys within one
  /// time-to-full. Memory is fixed by it: 26.7 bytes for each (106.7 with exact keys). Up to this many
  /// about one request in 1,000,000 overflows; at 1.3 times as many, one in 600.
  std::size_t live_keys;

  WhenFull when_full;
};

/// How a limiter has fared since it was made.
struct LocalLimiterStats {
  std::uint64_t overflowed;  // requests answered by `WhenFull`
  std::uint64_t inserted;    // buckets begun
};

/// A bucket for each key, all under one limit, in one process: bounded memory, no lock where a
/// key is met again.
///
///     LocalLimiter limiter{limit, {.live_keys = 1'000'000, .when_full = WhenFull::deny}, clock.now()};
///     if (!limiter.acquire(tenant, clock).allowed()) return too_many_requests();
///
/// Each key's decisions are `decide()`'s, on a clock held at the highest instant at which any
/// bucket was begun. Hits and denials are lock-free, and a denial stores nothing; only the first
/// request of a key that has no bucket locks one of 256 stripes, for about two cache misses. A bucket
/// that is full is no bucket: its slot is free, and idle keys cost neither memory nor a sweep.
///
/// Keys are told apart by 62 bits of a keyed hash: two keys can, once in 2^62 pairs that meet in
/// one cache line, share a bucket and be limited as one (never less). `ExactLocalLimiter` compares bytes
/// instead, at four times the memory. Nobody who chooses keys can aim at collisions.
///
/// Thread safety: any thread, everything but construction and destruction.
/// Source: DESIGN, sections 2 and 6; how it works: detail/bucket_table.h.
template <class Key>
class BasicLocalLimiter {
 public:
  /// `epoch`: no later than the first `now`; an earlier one is held there. Throws
  /// std::invalid_argument for a limit that `fits_one_word` does not hold or options without
  /// `live_keys`, std::bad_alloc, and std::system_error where the kernel gives no randomness.
  BasicLocalLimiter(const Limit& limit, const LocalLimiterOptions& options, Instant epoch)
      : BasicLocalLimiter(limit, options, epoch, KeyedHash::random()) {}

  /// With a hash of the caller's: for tests that are to repeat themselves.
  BasicLocalLimiter(const Limit& limit, const LocalLimiterOptions& options, Instant epoch, const KeyedHash& hash)
      : hash_(hash),
        generations_{detail::Generation{detail::Schedule<std::uint64_t>{checked(limit, options), epoch}, nullptr}},
        groups_(groups_for(options.live_keys)),
        stripes_(stripe_count),
        table_(groups_.all(), stripes_.all(), generations_.back(),
               options.when_full == WhenFull::deny ? Table::WhenFull::deny : Table::WhenFull::admit) {}

  BasicLocalLimiter(const BasicLocalLimiter&) = delete;
  BasicLocalLimiter& operator=(const BasicLocalLimiter&) = delete;

  /// Takes `cost` tokens from the bucket of `key`, or refuses and takes nothing.
  [[nodiscard]] Answer acquire(std::string_view key, Instant now, Cost cost = one_token) noexcept {
    return table_.take(named(key), now, {cost.tokens(), Micros{0}, false});
  }

  /// The same, by a clock that is read while the bucket is on its way from memory.
  template <Clock Source>
  [[nodiscard]] Answer acquire(std::string_view key, Source& clock, Cost cost = one_token) noexcept {
    const Key name = named(key);
    table_.prefetch(name);
    return table_.take(name, clock.now(), {cost.tokens(), Micros{0}, false});
  }

  /// `cost` from each of `keys`, in their order, all at `now`; the answers go to `answers`, which
  /// is as long. Twice to four times as fast a key as single calls where the table is larger than
  /// the caches, because their memory accesses overlap.
  void acquire(std::span<const std::string_view> keys, Instant now, std::span<Answer> answers,
               Cost cost = one_token) noexcept {
    assert(keys.size() == answers.size());
    std::array<Key, batch> names;
    for (std::size_t done = 0; done < keys.size(); done += batch) {
      const std::size_t count = std::min(batch, keys.size() - done);
      for (std::size_t i = 0; i < count; ++i) {
        names[i] = named(keys[done + i]);
        table_.prefetch(names[i]);
      }
      for (std::size_t i = 0; i < count; ++i) {
        answers[done + i] = table_.take(names[i], now, {cost.tokens(), Micros{0}, false});
      }
    }
  }

  /// What `acquire(key, now, cost)` would be answered, if it took nothing and there is room.
  [[nodiscard]] Answer look(std::string_view key, Instant now, Cost cost = peek) noexcept {
    return table_.take(named(key), now, {cost.tokens(), Micros{0}, true});
  }

  /// As `BasicBucket::reserve`: to be acted on after `Answer::wait`.
  [[nodiscard]] Answer reserve(std::string_view key, Instant now, Cost cost, Micros patience) noexcept {
    return table_.take(named(key), now, {cost.tokens(), patience, false});
  }

  /// Gives tokens back to the bucket of `key`; a full or absent one stays as it is.
  void refund(std::string_view key, Instant now, Cost tokens) noexcept {
    table_.refund(named(key), now, tokens.tokens());
  }

  /// From `now` on every bucket is under `limit`: each debt is what the old limit says it is at
  /// `now`, converted to the new limit's units and rounded up (rule 2), so raising a plan refuses nobody.
  /// Takes effect without a pause; calls that are under way finish under either limit. Costs 100
  /// bytes that stay. Throws std::invalid_argument where the limit does not fit, or so many changes
  /// have been made that the count would end within 10 years.
  void change_limit(const Limit& limit, Instant now) {
    const std::lock_guard lock{changing_};
    const detail::Generation& old = table_.current();
    const Instant change = std::max({now, table_.high_water(), old.schedule.epoch()});
    const std::uint64_t base = old.highest_at(change) + 1;
    using Schedule = detail::Schedule<std::uint64_t>;
    if (base > most_base || Schedule::horizon(limit, change, base) < least_horizon / 3) {
      throw std::invalid_argument(
          "the new limit cannot be counted in 64 bits for 10 years in this limiter; make a new one");
    }
    table_.begin(generations_.emplace_back(detail::Generation{Schedule{limit, change, base}, &old}));
  }

  /// The limit that calls are now decided under.
  [[nodiscard]] const Limit& limit() const noexcept { return table_.current().schedule.limit(); }

  [[nodiscard]] LocalLimiterStats stats() const noexcept {
    return {table_.counters().overflowed.load(std::memory_order_relaxed),
            table_.counters().inserted.load(std::memory_order_relaxed)};
  }

  /// Buckets that are not full at `now`. Walks the whole table; for reports.
  [[nodiscard]] std::size_t live(Instant now) const noexcept { return table_.live(now); }

  /// All the memory there is or will be, but for the 100 bytes of each change of limit.
  [[nodiscard]] std::size_t bytes() const noexcept { return groups_.bytes() + stripes_.bytes() + sizeof *this; }

 private:
  using Table = detail::BucketTable<Key>;

  static constexpr std::size_t batch = 16;
  static constexpr std::size_t stripe_count = 256;
  static constexpr std::uint64_t most_base = std::uint64_t{1} << 62;

  static const Limit& checked(const Limit& limit, const LocalLimiterOptions& options) {
    if (options.live_keys == 0) throw std::invalid_argument("live_keys is 0; it must be at least 1");
    if (!fits_one_word(limit)) {
      throw std::invalid_argument("a limit that refills " + std::to_string(limit.refill()) +
                                  " units a microsecond (reduced) cannot be counted in 64 bits for 30 years; what "
                                  "fits is a refill of up to 9,000, after dividing refill and period by their greatest "
                                  "common divisor");
    }
    return limit;
  }

  /// Three slots in five are filled when `live_keys` are live.
  [[nodiscard]] static std::size_t groups_for(std::size_t live_keys) noexcept {
    const std::size_t slots = live_keys + live_keys - live_keys / 3;
    return std::max<std::size_t>(2, (slots + Table::slots_per_group - 1) / Table::slots_per_group);
  }

  [[nodiscard]] Key named(std::string_view key) const noexcept {
    if constexpr (std::same_as<Key, detail::HashedKey>) {
      return {hash_(key)};
    } else {
      return Key::of(key, hash_(key));
    }
  }

  KeyedHash hash_;
  std::mutex changing_;
  std::deque<detail::Generation> generations_;
  detail::Pages<typename Table::Group> groups_;
  detail::Pages<typename Table::Stripe> stripes_;
  Table table_;
};

using LocalLimiter = BasicLocalLimiter<detail::HashedKey>;

/// Compares keys byte for byte; of keys longer than 47 bytes the first 31 and 128 bits of hash.
using ExactLocalLimiter = BasicLocalLimiter<detail::ExactKey>;

}  // namespace weir
