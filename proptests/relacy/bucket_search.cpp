#include <boost/test/unit_test.hpp>

#include "proptests/relacy/search.h"
#include "weir/atomic_bucket.h"

namespace weir::relacy {
namespace {

constexpr Instant start{};

Limit limit_of(std::int64_t capacity) {
  return Limit::make(capacity, 1, Micros{1'000'000}).value();
}

/// A cell that checks, then stores: its compare-and-swap has lost the swap.
class LostUpdateCell {
 public:
  using Units = std::uint64_t;
  explicit LostUpdateCell(Units value) : value_(value) {}
  [[nodiscard]] Units load() const { return value_.load(std::memory_order_relaxed); }
  bool replace(Units& seen, Units next) {
    const Units held = load();
    if (held != seen) {
      seen = held;
      return false;
    }
    value_.store(next, std::memory_order_relaxed);
    return true;
  }

 private:
  Atomics::Atomic<std::uint64_t> value_;
};

/// Three threads ask two tokens for one each.
template <class Cell>
struct ThreeTakeFromTwo : rl::test_suite<ThreeTakeFromTwo<Cell>, 3> {
  BasicBucket<Cell> bucket{limit_of(2), start};
  int admitted[3] = {};

  void thread(unsigned index) { admitted[index] = bucket.acquire(start).allowed(); }
  void after() { RL_ASSERT(admitted[0] + admitted[1] + admitted[2] == 2); }
};

/// One takes, one takes and gives back, one reserves. The debt is what was kept.
template <class Cell>
struct TakeRefundReserve : rl::test_suite<TakeRefundReserve<Cell>, 3> {
  BasicBucket<Cell> bucket{limit_of(2), start};
  std::int64_t kept[3] = {};

  void thread(unsigned index) {
    if (index == 0) kept[0] = bucket.acquire(start).allowed();
    if (index == 1 && bucket.acquire(start).allowed()) bucket.refund(start, one_token);
    if (index == 2) kept[2] = bucket.reserve(start, one_token, Micros{1'000'000}).allowed();
  }
  void after() { RL_ASSERT(bucket.state(start).debt == (kept[0] + kept[2]) * 1'000'000); }
};

using Shipped = detail::AtomicCell<Atomics>;

BOOST_AUTO_TEST_SUITE(bucket_search)

BOOST_AUTO_TEST_CASE(no_execution_of_three_threads_takes_more_or_less_than_there_is) {
  const Found found = search_all<ThreeTakeFromTwo<Shipped>>();
  BOOST_TEST_MESSAGE(found.executions << " executions");
  BOOST_TEST(!found.fault, found.history);
}

BOOST_AUTO_TEST_CASE(no_execution_of_take_refund_and_reserve_loses_a_token) {
  const Found found = search_bounded<TakeRefundReserve<Shipped>>(3);
  BOOST_TEST_MESSAGE(found.executions << " executions");
  BOOST_TEST(!found.fault, found.history);
}

BOOST_AUTO_TEST_CASE(a_cell_that_lost_its_swap_is_found) {
  BOOST_TEST(search_all<ThreeTakeFromTwo<LostUpdateCell>>().fault);
  BOOST_TEST(search_bounded<TakeRefundReserve<LostUpdateCell>>(3).fault);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::relacy
