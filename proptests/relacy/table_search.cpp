#include <array>
#include <boost/test/unit_test.hpp>

#include "proptests/relacy/search.h"
#include "weir/detail/bucket_table.h"

namespace weir::relacy {
namespace {

using Key = detail::HashedKey;

/// A limit whose numbers stay small: one token is one unit is one microsecond.
const Limit limit = Limit::make(2, 1, Micros{1}).value();
const detail::Generation generation{detail::Schedule<std::uint64_t>{limit, Instant{}}, nullptr};

constexpr Instant at(std::int64_t us) {
  return Instant{Micros{us}};
}
constexpr Key key(std::uint64_t name) {
  return {{name << 2, name}};
}

const Key alice = key(1);
const Key bob = key(2);
const Key carol = key(3);

/// A table of one slot: everybody is after it.
template <class Policy, std::size_t Slots = 1>
struct OneSlot {
  using Table = detail::BucketTable<Key, Policy, Slots>;
  std::array<typename Table::Group, 1> groups;
  std::array<typename Table::Stripe, 2> stripes;
  Table table{groups, stripes, generation, Table::WhenFull::deny};

  bool take(const Key& whose, std::int64_t us, std::int64_t cost = 1) {
    return table.take(whose, at(us), {cost, Micros{0}, false}).allowed();
  }
};

template <class Policy>
using TwoSlots = OneSlot<Policy, 2>;

/// Two threads meet a key that has no bucket yet: it gets one bucket.
template <class Policy>
struct TwoBegin : rl::test_suite<TwoBegin<Policy>, 2> {
  TwoSlots<Policy> crowd;
  int admitted[2] = {};

  void thread(unsigned index) { admitted[index] = crowd.take(alice, 10, 2); }
  void after() { RL_ASSERT(admitted[0] + admitted[1] == 1); }
};

/// A hit on Alice's bucket by a clock that is behind, while by Bob's it is full, so that he may have
/// its slot. Nobody is charged for another, and whoever is admitted is charged.
template <class Policy>
struct HitMeetsEviction : rl::test_suite<HitMeetsEviction<Policy>, 2> {
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

/// Alice is evicted, and comes back by a clock by which her old bucket was not full.
template <class Policy>
struct EvictedComesBack : rl::test_suite<EvictedComesBack<Policy>, 2> {
  TwoSlots<Policy> crowd;
  int admitted = 0;

  void before() {
    RL_ASSERT(crowd.take(alice, 1, 2));  // her tat: 3
    RL_ASSERT(crowd.take(carol, 1, 1));  // hers: 2
  }
  void thread(unsigned index) {
    if (index == 0) {
      RL_ASSERT(crowd.take(bob, 4, 2));
      RL_ASSERT(crowd.take(carol, 4, 2));
    } else {
      admitted = crowd.take(alice, 2, 2);
    }
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

/// More is given back than is owed: the bucket is full, and no fuller.
template <class Policy>
struct RefundPastFull : rl::test_suite<RefundPastFull<Policy>, 2> {
  OneSlot<Policy> crowd;

  void before() { RL_ASSERT(crowd.take(alice, 10)); }
  void thread(unsigned) { crowd.table.refund(alice, at(10), 2); }
  void after() {
    RL_ASSERT(crowd.take(alice, 10, 2));
    RL_ASSERT(!crowd.take(alice, 10));
  }
};

BOOST_AUTO_TEST_SUITE(table_search)

void finds_nothing(const Found& found) {
  BOOST_TEST_MESSAGE(found.executions << " executions");
  BOOST_TEST(!found.fault, "found in execution " << found.executions << "\n" << found.history);
}

BOOST_AUTO_TEST_CASE(two_threads_begin_one_bucket_for_a_key) {
  finds_nothing(search_bounded<TwoBegin<Atomics>>(3));
}

BOOST_AUTO_TEST_CASE(a_hit_and_an_eviction_charge_nobody_for_another) {
  finds_nothing(search_bounded<HitMeetsEviction<Atomics>>(2));
}

BOOST_AUTO_TEST_CASE(whoever_was_evicted_comes_back_no_earlier_than_she_was_full) {
  finds_nothing(search_bounded<EvictedComesBack<Atomics>>(2));
}

BOOST_AUTO_TEST_CASE(a_refunded_bucket_is_not_evicted_under_a_reader_of_its_higher_tat) {
  finds_nothing(search_bounded<RefundMeetsEviction<Atomics>>(1));
}

BOOST_AUTO_TEST_CASE(a_refund_fills_a_bucket_and_no_more) {
  finds_nothing(search_bounded<RefundPastFull<Atomics>>(2));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::relacy
