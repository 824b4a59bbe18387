#pragma once

#include <array>
#include <cstdint>

#include "proptests/relacy/relacy_atomics.h"
#include "weir/detail/bucket_table.h"

/// Small programs over the table that ships, each with what must hold after every execution, and with
/// how many preemptions its search allows.
namespace weir::relacy {

using Key = detail::HashedKey;

/// A limit whose numbers stay small: one token is one unit is one microsecond.
inline const Limit limit = Limit::make(2, 1, Micros{1}).value();
inline const detail::Generation generation{detail::Schedule<std::uint64_t>{limit, Instant{}}, nullptr};

constexpr Instant at(std::int64_t us) {
  return Instant{Micros{us}};
}

/// Where there are two groups, all of them prefer the first.
constexpr Key key(std::uint64_t name) {
  return {{name << 2, 1}};
}
constexpr Key alice = key(1);
constexpr Key bob = key(2);

template <class Policy, std::size_t Groups, std::size_t SlotsPerGroup>
struct Crowd {
  using Table = detail::BucketTable<Key, Policy, SlotsPerGroup, 2>;
  std::array<typename Table::Group, Groups> groups;
  std::array<typename Table::Stripe, 1> stripes;
  Table table{groups, stripes, generation, Table::WhenFull::deny};

  bool take(const Key& whose, std::int64_t us, std::int64_t cost = 1) {
    return table.take(whose, at(us), {cost, Micros{0}, false}).allowed();
  }
};

/// Everybody is after the one slot.
template <class Policy>
using OneSlot = Crowd<Policy, 1, 1>;

/// Two threads meet a key that has no bucket yet: it gets one bucket.
template <class Policy>
struct TwoBegin : rl::test_suite<TwoBegin<Policy>, 2> {
  static constexpr unsigned preemptions = 3;
  Crowd<Policy, 1, 2> crowd;
  int admitted[2] = {};

  void thread(unsigned index) { admitted[index] = crowd.take(alice, 10, 2); }
  void after() { RL_ASSERT(admitted[0] + admitted[1] == 1); }
};

/// A hit on Alice's bucket by a clock that is behind, while by Bob's it is full, so that he may have
/// its slot. Nobody is charged for another, and whoever is admitted is charged.
template <class Policy>
struct HitMeetsEviction : rl::test_suite<HitMeetsEviction<Policy>, 2> {
  static constexpr unsigned preemptions = 3;
  OneSlot<Policy> crowd;
  int alice_admitted = 0;
  int bob_admitted = 0;

  void before() { RL_ASSERT(crowd.take(alice, 1, 2)); }  // her tat: 3
  void thread(unsigned index) {
    if (index == 0) alice_admitted = crowd.take(alice, 2);
    if (index == 1) bob_admitted = crowd.take(bob, 4);
  }
  void after() {
    if (bob_admitted == 1) {
      RL_ASSERT(crowd.take(bob, 4));
      RL_ASSERT(!crowd.take(bob, 4));
    } else if (alice_admitted == 1) {
      RL_ASSERT(!crowd.take(alice, 2));
    }
  }
};

/// The same by one clock: a tat that she could raise as her own may be Bob's first.
template <class Policy>
struct HitMeetsNewTenant : rl::test_suite<HitMeetsNewTenant<Policy>, 2> {
  static constexpr unsigned preemptions = 3;
  OneSlot<Policy> crowd;
  int admitted[2] = {};

  void before() { RL_ASSERT(crowd.take(alice, 1, 2)); }  // her tat: 3
  void thread(unsigned index) { admitted[index] = crowd.take(index == 0 ? alice : bob, 4); }
  // One of them has the slot, and one token left.
  void after() {
    RL_ASSERT(admitted[0] + admitted[1] == 1);
    const Key& whose = admitted[0] == 1 ? alice : bob;
    RL_ASSERT(crowd.take(whose, 4));
    RL_ASSERT(!crowd.take(whose, 4));
  }
};

/// Alice is evicted, and comes back, to another slot, by a clock by which her old bucket was not full.
template <class Policy>
struct EvictedComesBack : rl::test_suite<EvictedComesBack<Policy>, 2> {
  static constexpr unsigned preemptions = 3;
  Crowd<Policy, 2, 1> crowd;
  int admitted = 0;

  void before() { RL_ASSERT(crowd.take(alice, 1, 2)); }  // her tat: 3
  void thread(unsigned index) {
    if (index == 0) RL_ASSERT(crowd.take(bob, 4));
    if (index == 1) admitted = crowd.take(alice, 2, 2);
  }
  // By 2 she had one token; two she can only have had as of 4, and then they are gone at 4.
  void after() {
    if (admitted == 1) RL_ASSERT(!crowd.take(alice, 4));
  }
};

/// Alice was refunded, so her tat has been higher: her slot must not be let while a reader of the
/// higher one is under way, or Bob's bucket could come to that very number and be charged for her.
template <class Policy>
struct RefundMeetsEviction : rl::test_suite<RefundMeetsEviction<Policy>, 3> {
  static constexpr unsigned preemptions = 1;
  OneSlot<Policy> crowd;
  int bob_admitted = 0;

  void before() { RL_ASSERT(crowd.take(alice, 2, 2)); }  // her tat: 4
  void thread(unsigned index) {
    if (index == 0) static_cast<void>(crowd.take(alice, 3));  // 4 to 5
    if (index == 1) crowd.table.refund(alice, at(2), 2);      // 4 to 2
    if (index == 2) bob_admitted = crowd.take(bob, 3);        // if he may: to 4
  }
  void after() {
    if (bob_admitted == 1) RL_ASSERT(crowd.take(bob, 3));
  }
};

/// More is given back than is owed, by two at once: the bucket is full, and no fuller, not even for a
/// caller whose clock is behind.
template <class Policy>
struct RefundPastFull : rl::test_suite<RefundPastFull<Policy>, 2> {
  static constexpr unsigned preemptions = 3;
  OneSlot<Policy> crowd;

  void before() { RL_ASSERT(crowd.take(alice, 10)); }  // her tat: 11
  void thread(unsigned) { crowd.table.refund(alice, at(10), 2); }
  void after() {
    RL_ASSERT(!crowd.take(alice, 9, 2));
    RL_ASSERT(crowd.take(alice, 10, 2));
    RL_ASSERT(!crowd.take(alice, 10));
  }
};

}  // namespace weir::relacy
