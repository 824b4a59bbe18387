#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "weir/answer.h"
#include "weir/bucket.h"
#include "weir/detail/atomics.h"
#include "weir/detail/schedule.h"
#include "weir/keyed_hash.h"
#include "weir/limit.h"
#include "weir/time.h"

/// Buckets by key in a table of fixed size: what LocalLimiter is made of.
///
/// A slot is a tag, which says whose bucket it is, and a tat, the bucket. A bucket that is full is
/// the same as one that is absent, so a slot whose tat has passed is free, without anybody
/// sweeping. The tat doubles as the slot's version: it rises with every request, and a slot is let
/// anew only once its tat has passed, to a tat that has not, so no value comes twice to a slot
/// under two tenants, and a compare-and-swap on the tat alone proves that the tag read beside it
/// was the tenant's. Hits and denials need no more than that: no lock, no 16-byte swap, nothing to
/// reclaim.
///
/// What keeps "no value comes twice":
/// - Only a tat strictly below now is free, where now is the table's high-water mark, raised before
///   the slot is taken; every new tenant's tat starts at or above it. A caller whose clock is behind
///   cannot start, or be refunded, below it.
/// - A refund lowers a tat, so the tenant has had higher ones. Its tag is marked first, and a marked
///   slot is free only two times-to-full after its tat: no tenant's tat was ever higher than that.
/// - A change of limit starts a new generation of tats above all old ones; see `Generation`.
///
/// Orders: a tenant moves in by locking the tat (acquire-release), naming itself in the tag
/// (release), and storing its tat (release). A reader loads the tat (acquire), then the tag
/// (acquire): the tag it sees is no older than the tat. Denied, it loads the tat again: the tag it
/// saw is no newer either. What ends in a compare-and-swap needs no second look.
namespace weir::detail {

/// One limit, from one instant on. Later generations count from a base above every tat of the
/// earlier, so a tat's generation is told by its size, an old one is read as rule 2 has it (the
/// limit that wrote it governs up to the change; then the debt is converted, rounded up), and a
/// caller who still holds the old limit finds the new tats too high to touch.
struct Generation {
  Schedule<std::uint64_t> schedule;
  const Generation* before;  // null for the first

  /// `tat` as this generation counts it. 0, a slot never used, stays 0.
  [[nodiscard]] constexpr std::uint64_t read(std::uint64_t tat) const noexcept {
    if (tat >= schedule.base() || before == nullptr) return tat;
    const std::uint64_t then = before->schedule.at(schedule.epoch());
    const std::int64_t owed = before->schedule.debt(before->read(tat), then);
    if (owed == 0) return 0;
    const Limit& old = before->schedule.limit();
    const Bucket stored{owed, schedule.epoch(), old.refill(), old.period().count()};
    return schedule.base() + static_cast<std::uint64_t>(debt_at(schedule.limit(), stored, schedule.epoch()));
  }

  /// What the next generation must start above: callers may bring clocks that differ by an hour.
  [[nodiscard]] constexpr std::uint64_t highest_at(Instant change) const noexcept {
    return schedule.at(change + Micros{std::int64_t{3'600} * 1'000'000}) +
           2 * static_cast<std::uint64_t>(schedule.capacity_units());
  }
};

/// Tells keys apart by 62 bits of their hash. Two keys in one group share a bucket, so are
/// limited together, with a chance of 2^-62 a pair.
struct HashedKey {
  KeyDigest digest;

  /// What a group of `Slots` keeps of its keys beside the tags: nothing.
  template <class Atomics, std::size_t Slots>
  struct Stored {
    void name(std::size_t /*slot*/, const HashedKey&) noexcept {}
    [[nodiscard]] bool is(std::size_t /*slot*/, const HashedKey&) const noexcept { return true; }
  };
};

/// Tells keys apart by their bytes: up to 47 of them; the rest of a longer one by 128 bits of hash.
struct ExactKey {
  using Words = std::array<std::uint64_t, 6>;

  KeyDigest digest;
  Words words;

  template <class Atomics, std::size_t Slots>
  struct Stored {
    void name(std::size_t slot, const ExactKey& key) noexcept {
      for (std::size_t i = 0; i < key.words.size(); ++i) {
        words[slot][i].store(key.words[i], std::memory_order_release);
      }
    }
    [[nodiscard]] bool is(std::size_t slot, const ExactKey& key) const noexcept {
      bool same = true;
      for (std::size_t i = 0; i < key.words.size(); ++i) {
        same &= words[slot][i].load(std::memory_order_acquire) == key.words[i];
      }
      return same;
    }
    std::array<std::array<typename Atomics::template Atomic<std::uint64_t>, 6>, Slots> words{};
  };

  [[nodiscard]] static ExactKey of(std::string_view key, const KeyDigest& digest) noexcept {
    ExactKey exact{digest, {}};
    std::array<char, 48> bytes{};
    if (key.size() < bytes.size()) {
      key.copy(bytes.data(), key.size());
      bytes.back() = static_cast<char>(key.size());
    } else {
      key.copy(bytes.data(), 31);
      std::memcpy(bytes.data() + 31, &digest, sizeof digest);
      bytes.back() = static_cast<char>(bytes.size());
    }
    std::memcpy(exact.words.data(), bytes.data(), sizeof exact.words);
    return exact;
  }
};

/// `SlotsPerGroup` is 4, and a key looks in up to 8 groups (`Choices`), but for the model checker, which
/// would rather have one slot, and as few looks as there are.
template <class Key, class Atomics = StdAtomics, std::size_t SlotsPerGroup = 4, std::size_t Choices = 8>
class BucketTable {
 public:
  template <class T>
  using Atomic = typename Atomics::template Atomic<T>;

  static constexpr std::size_t slots_per_group = SlotsPerGroup;

  /// Four slots, the tags together and the tats together: one cache line of hashed keys.
  struct alignas(64) Group {
    std::array<Atomic<std::uint64_t>, slots_per_group> tags{};
    std::array<Atomic<std::uint64_t>, slots_per_group> tats{};
    [[no_unique_address]] typename Key::template Stored<Atomics, slots_per_group> keys{};
  };

  struct alignas(64) Stripe {
    Atomic<bool> locked{false};
  };

  /// Counters since construction, each exact; together not one instant's.
  struct Counters {
    Atomic<std::uint64_t> overflowed{0};  // requests that found no slot for their bucket
    Atomic<std::uint64_t> inserted{0};    // buckets begun
  };

  enum class WhenFull { deny, admit };

  /// What is asked for.
  struct Demand {
    std::int64_t cost;
    Micros patience;  // how long the asker would wait for its tokens
    bool look_only;
  };

  /// `groups` and `stripes` outlive the table and are in their initial state; at least one each.
  BucketTable(std::span<Group> groups, std::span<Stripe> stripes, const Generation& first, WhenFull when_full) noexcept
      : groups_(groups), stripes_(stripes), when_full_(when_full), generation_(&first) {}

  void prefetch(const Key& key) const noexcept {
    __builtin_prefetch(&group(key, 0));
    __builtin_prefetch(&group(key, 1));
  }

  [[nodiscard]] Answer take(const Key& key, Instant now, const Demand& demand) noexcept {
    View view = view_at(now);
    if (demand.cost > view.limit().capacity() || view.schedule().past_horizon(now)) [[unlikely]] {
      return never(key, view);
    }
    if (const auto answer = take_from(key, 0, view, demand)) return *answer;
    if (const auto answer = take_from(key, 1, view, demand)) return *answer;
    return take_elsewhere(key, view, demand);
  }

  void refund(const Key& key, Instant now, std::int64_t tokens) noexcept {
    for (std::size_t choice = 0; choice < candidates(key); ++choice) {
      if (refund_in(key, choice, now, tokens)) return;
    }
  }

  /// All later calls are decided by `next`, which continues `current()`.
  /// Callers of `begin` exclude each other.
  void begin(const Generation& next) noexcept { generation_.store(&next, std::memory_order_release); }
  [[nodiscard]] const Generation& current() const noexcept { return *generation_.load(std::memory_order_acquire); }

  /// The latest instant at which a bucket was begun: nothing is begun or refunded before it.
  [[nodiscard]] Instant high_water() const noexcept {
    return Instant{Micros{high_water_us_.load(std::memory_order_relaxed)}};
  }

  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

  /// Buckets that are not full at `now`; a walk over the table, exact only when nobody else is in it.
  [[nodiscard]] std::size_t live(Instant now) const noexcept {
    const View view = view_at(now);
    std::size_t count = 0;
    for (const Group& group : groups_) {
      for (const auto& tat : group.tats) {
        const std::uint64_t word = tat.load(std::memory_order_relaxed);
        count += word != locked && view.read(word) > view.at;
      }
    }
    return count;
  }

 private:
  static constexpr std::uint64_t locked = ~std::uint64_t{0};  // a tat whose slot is changing tenants

  // The two low bits of a tag are not the key's.
  static constexpr std::uint64_t refunded = 1;     // this tenant's tat was lowered
  static constexpr std::uint64_t overflowing = 2;  // of the first tag: keys of this group may be elsewhere
  static constexpr std::uint64_t key_bits = ~std::uint64_t{3};

  static constexpr std::size_t first_choices = 2;
  static constexpr std::size_t all_choices = Choices;
  static_assert(first_choices <= all_choices && all_choices <= 8);

  /// A limit, and now by its count.
  struct View {
    const Generation* generation;
    Instant now;
    std::uint64_t at;

    [[nodiscard]] const auto& schedule() const noexcept { return generation->schedule; }
    [[nodiscard]] const Limit& limit() const noexcept { return generation->schedule.limit(); }
    [[nodiscard]] std::uint64_t read(std::uint64_t tat) const noexcept { return generation->read(tat); }
  };

  struct Slot {
    Group* group;
    std::size_t index;
    std::uint64_t tat;
  };

  [[nodiscard]] View view_at(Instant now) const noexcept {
    const Generation& generation = current();
    return {&generation, now, generation.schedule.at(now)};
  }

  /// A tat further ahead than any of ours can be is a newer generation's, or the clock ran back.
  [[nodiscard]] bool outdated(View& view, std::uint64_t tat) const noexcept {
    if (tat <= view.at + 2 * static_cast<std::uint64_t>(view.schedule().capacity_units())) return false;
    const View fresh = view_at(view.now);
    if (fresh.generation == view.generation) return false;
    view = fresh;
    return true;
  }

  [[nodiscard]] static std::uint64_t tag_of(const Key& key) noexcept {
    const std::uint64_t tag = key.digest.tag & key_bits;
    return tag != 0 ? tag : ~key_bits + 1;
  }

  [[nodiscard]] Group& group(const Key& key, std::size_t choice) const noexcept {
    // Fibonacci's multiplier, by as many turns as the choice: other bits of the same half decide.
    constexpr std::array<std::uint64_t, 8> turns = {1,
                                                    0x9e3779b97f4a7c15,
                                                    0xf39cc0605cedc835,
                                                    0x1082276bf3a27251,
                                                    0xbf58476d1ce4e5b9,
                                                    0x94d049bb133111eb,
                                                    0xd6e8feb86659fd93,
                                                    0xff51afd7ed558ccd};
    const std::uint64_t spread = key.digest.place * turns[choice];
    return groups_[static_cast<std::size_t>((uint128{spread} * groups_.size()) >> 64)];
  }

  [[nodiscard]] bool holds(const Group& in, std::size_t index, const Key& key) const noexcept {
    return (in.tags[index].load(std::memory_order_acquire) & key_bits) == tag_of(key) && in.keys.is(index, key);
  }

  /// Eight where keys of its first two groups overflowed, else two.
  [[nodiscard]] std::size_t candidates(const Key& key) const noexcept {
    const auto marked = [&](std::size_t choice) {
      return (group(key, choice).tags[0].load(std::memory_order_relaxed) & overflowing) != 0;
    };
    return marked(0) && marked(1) ? all_choices : first_choices;
  }

  /// Empty where the key has no slot there.
  [[nodiscard]] std::optional<Answer> take_from(const Key& key, std::size_t choice, View& view,
                                                const Demand& demand) noexcept {
    Group& in = group(key, choice);
    const std::uint64_t tag = tag_of(key);
    unsigned matches = 0;  // without a branch a slot: which one it is, nobody can predict
    for (std::size_t i = 0; i < slots_per_group; ++i) {
      matches |= unsigned{(in.tags[i].load(std::memory_order_acquire) & key_bits) == tag} << i;
    }
    for (; matches != 0; matches &= matches - 1) {
      if (const auto answer = take_at(key, in, static_cast<std::size_t>(std::countr_zero(matches)), view, demand)) {
        return answer;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Answer> take_at(const Key& key, Group& in, std::size_t index, View& view,
                                              const Demand& demand) noexcept {
    Atomic<std::uint64_t>& tat = in.tats[index];
    for (std::uint64_t word = tat.load(std::memory_order_acquire); word != locked && holds(in, index, key);) {
      const auto charge =
          view.schedule().charge(view.read(word), view.at, demand.cost, view.schedule().ceiling(demand.patience));
      if (charge.writes && !demand.look_only) {
        if (tat.compare_exchange_weak(word, charge.next, std::memory_order_acquire, std::memory_order_acquire)) {
          return charge.answer;
        }
        continue;
      }
      if (outdated(view, word)) continue;
      const std::uint64_t again = tat.load(std::memory_order_relaxed);
      if (again == word) return charge.answer;
      word = tat.load(std::memory_order_acquire);
    }
    return std::nullopt;
  }

  [[nodiscard]] Answer never(const Key& key, View view) noexcept {
    const Demand nothing{0, Micros{0}, true};
    for (std::size_t choice = 0; choice < candidates(key); ++choice) {
      if (const auto answer = take_from(key, choice, view, nothing)) return Answer::never_with(answer->debt());
    }
    return Answer::never_with(0);
  }

  [[gnu::noinline]] Answer take_elsewhere(const Key& key, View view, const Demand& demand) noexcept {
    for (std::size_t choice = first_choices; choice < candidates(key); ++choice) {
      if (const auto answer = take_from(key, choice, view, demand)) return *answer;
    }
    // A bucket that is nowhere is full.
    if (demand.cost == 0 || demand.look_only) return Answer::allowed_with(price(view, demand));
    Stripe& stripe = stripes_[key.digest.place % stripes_.size()];
    lock(stripe);
    const Answer answer = take_anew(key, view.now, demand);
    stripe.locked.store(false, std::memory_order_release);
    return answer;
  }

  /// Begins a bucket for a key that has none; the caller holds the key's stripe.
  [[nodiscard]] Answer take_anew(const Key& key, Instant now, const Demand& demand) noexcept {
    for (;;) {
      View view = view_at(held(now));
      // Whoever held the stripe before us may have begun it.
      for (std::size_t choice = 0; choice < candidates(key); ++choice) {
        if (const auto answer = take_from(key, choice, view, demand)) return *answer;
      }
      // Only now: having seen that the key's slot was let anew, we also see the high-water mark at
      // which its bucket was full, and begin no earlier.
      view = view_at(raise_high_water(now));
      std::optional<Slot> slot = free_slot(key, 0, first_choices, view);
      if (!slot) {
        for (std::size_t choice = 0; choice < first_choices; ++choice) {
          group(key, choice).tags[0].fetch_or(overflowing, std::memory_order_relaxed);
        }
        slot = free_slot(key, first_choices, all_choices, view);
      }
      if (!slot) return overflow(key, view, demand);
      if (move_in(key, *slot, view, view.at + static_cast<std::uint64_t>(price(view, demand)))) {
        counters_.inserted.fetch_add(1, std::memory_order_relaxed);
        return Answer::allowed_with(price(view, demand));
      }
    }
  }

  /// The free slot that was free longest, in the emptier of the groups.
  [[nodiscard]] std::optional<Slot> free_slot(const Key& key, std::size_t from, std::size_t to,
                                              const View& view) const noexcept {
    std::optional<Slot> best;
    int most = 0;
    for (std::size_t choice = from; choice < to; ++choice) {
      Group& in = group(key, choice);
      std::optional<Slot> oldest;
      int count = 0;
      for (std::size_t i = 0; i < slots_per_group; ++i) {
        const std::uint64_t tat = in.tats[i].load(std::memory_order_acquire);
        if (tat == locked || !is_free(tat, in.tags[i].load(std::memory_order_acquire), view)) continue;
        ++count;
        if (!oldest || tat < oldest->tat) oldest = Slot{&in, i, tat};
      }
      if (count > most) most = count, best = oldest;
    }
    return best;
  }

  [[nodiscard]] static bool is_free(std::uint64_t tat, std::uint64_t tag, const View& view) noexcept {
    const bool lowered = (tag & refunded) != 0;
    const std::uint64_t once_at_most =
        view.read(tat) + (lowered ? 2 * static_cast<std::uint64_t>(view.schedule().capacity_units()) : 0);
    return tat == 0 || once_at_most < view.at;
  }

  /// False where the slot was taken, or its tenant came back, since it was found free.
  [[nodiscard]] bool move_in(const Key& key, Slot slot, const View& view, std::uint64_t tat) noexcept {
    Atomic<std::uint64_t>& word = slot.group->tats[slot.index];
    if (!word.compare_exchange_strong(slot.tat, locked, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return false;
    }
    Atomic<std::uint64_t>& tag = slot.group->tags[slot.index];
    std::uint64_t old = tag.load(std::memory_order_relaxed);
    if (!is_free(slot.tat, old, view)) {
      // Lowered to the very tat we found, by a caller whose clock is behind. The slot stays nobody's
      // until no tat its tenant had can come again.
      while (!tag.compare_exchange_weak(old, old & overflowing, std::memory_order_release, std::memory_order_relaxed)) {
      }
      word.store(view.at + 2 * static_cast<std::uint64_t>(view.schedule().capacity_units()), std::memory_order_release);
      return false;
    }
    slot.group->keys.name(slot.index, key);
    while (!tag.compare_exchange_weak(old, tag_of(key) | (old & overflowing), std::memory_order_release,
                                      std::memory_order_relaxed)) {
    }
    word.store(tat, std::memory_order_release);
    return true;
  }

  /// Every slot the key could have is a live bucket's.
  [[nodiscard]] Answer overflow(const Key& key, const View& view, const Demand& demand) noexcept {
    counters_.overflowed.fetch_add(1, std::memory_order_relaxed);
    if (when_full_ == WhenFull::admit) return Answer::allowed_with(price(view, demand));
    std::uint64_t earliest = view.at + 2 * static_cast<std::uint64_t>(view.schedule().capacity_units());
    for (std::size_t choice = 0; choice < all_choices; ++choice) {
      for (const auto& tat : group(key, choice).tats) {
        earliest = std::min(earliest, view.read(tat.load(std::memory_order_relaxed)));
      }
    }
    const std::uint64_t until = earliest >= view.at ? earliest - view.at + 1 : 1;
    return Answer::denied_with(view.schedule().capacity_units(), static_cast<std::int64_t>(until));
  }

  [[nodiscard]] bool refund_in(const Key& key, std::size_t choice, Instant now, std::int64_t tokens) noexcept {
    Group& in = group(key, choice);
    for (std::size_t i = 0; i < slots_per_group; ++i) {
      std::uint64_t word = in.tats[i].load(std::memory_order_acquire);
      while (word != locked && holds(in, i, key)) {
        // Only now: having seen the tenant's tat, we also see the high-water mark it began at.
        View view = view_at(held(now));
        if (outdated(view, word)) view = view_at(held(now));
        const std::uint64_t tat = view.read(word);
        if (tat <= view.at) return true;
        std::uint64_t tag = in.tags[i].load(std::memory_order_relaxed);
        if ((tag & key_bits) != tag_of(key)) break;
        if ((tag & refunded) == 0 && !in.tags[i].compare_exchange_strong(tag, tag | refunded, std::memory_order_relaxed,
                                                                         std::memory_order_relaxed)) {
          word = in.tats[i].load(std::memory_order_acquire);
          continue;
        }
        if (in.tats[i].compare_exchange_weak(word, view.schedule().refunded(tat, view.at, tokens),
                                             std::memory_order_acq_rel, std::memory_order_acquire)) {
          return true;
        }
      }
    }
    return false;
  }

  [[nodiscard]] static std::int64_t price(const View& view, const Demand& demand) noexcept {
    return demand.cost * view.limit().units_per_token();
  }

  [[nodiscard]] Instant held(Instant now) const noexcept { return std::max(now, high_water()); }

  [[nodiscard]] Instant raise_high_water(Instant now) noexcept {
    const std::int64_t us = now.time_since_epoch().count();
    std::int64_t highest = high_water_us_.load(std::memory_order_relaxed);
    while (highest < us) {
      if (high_water_us_.compare_exchange_weak(highest, us, std::memory_order_relaxed, std::memory_order_relaxed)) {
        return now;
      }
    }
    return Instant{Micros{highest}};
  }

  static void lock(Stripe& stripe) noexcept {
    while (stripe.locked.exchange(true, std::memory_order_acquire)) Atomics::pause();
  }

  std::span<Group> groups_;
  std::span<Stripe> stripes_;
  WhenFull when_full_;
  Atomic<const Generation*> generation_;
  alignas(64) Atomic<std::int64_t> high_water_us_{0};
  Counters counters_;
};

}  // namespace weir::detail
