#include "weir/lease.h"

#include <rapidcheck/boost_test.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>
#include <vector>

#include "proptests/suites/local/generators.h"
#include "weir/atomic_bucket.h"

namespace weir {
namespace {

using namespace local_suite;

constexpr Instant start{Micros{1'750'000'000'000'000}};

BOOST_AUTO_TEST_SUITE(lease_suite)

RC_BOOST_PROP(what_is_owed_is_what_was_spent_and_what_lies_in_leases, ()) {
  const Limit limit = *one_word_limit();
  AtomicBucket bucket{limit, start};
  std::int64_t spent = 0;
  {
    const std::int64_t most = *magnitude(limit.capacity());
    Lease one{bucket, {.most_tokens = most, .time_to_live = Micros{1'000}}};
    Lease other{bucket, {.most_tokens = 3, .time_to_live = Micros{1'000}}};
    for (int call = 0; call < 30; ++call) {
      const Cost cost = *any_cost(limit);
      Lease<AtomicBucket>& lease = *rc::gen::arbitrary<bool>() ? one : other;
      if (lease.acquire(start, cost)) spent += cost.tokens();
      RC_ASSERT(bucket.state(start).debt == (spent + one.left() + other.left()) * limit.units_per_token());
      RC_ASSERT(one.left() <= most);
    }
  }
  RC_ASSERT(bucket.state(start).debt == spent * limit.units_per_token());
}

RC_BOOST_PROP(a_lease_refuses_only_what_the_bucket_has_not, ()) {
  const Limit limit = *one_word_limit();
  AtomicBucket bucket{limit, start};
  Lease lease{bucket, {.most_tokens = *magnitude(limit.capacity()), .time_to_live = Micros{1'000}}};
  for (int call = 0; call < 30; ++call) {
    const Cost cost = *any_cost(limit);
    const std::int64_t there = bucket.look(start).remaining(limit) + lease.left();
    RC_ASSERT(lease.acquire(start, cost) == (cost.tokens() <= there));
  }
}

RC_BOOST_PROP(no_window_holds_more_than_the_limit_and_what_lay_in_leases_when_it_began, ()) {
  const Limit limit = *one_word_limit();
  AtomicBucket bucket{limit, start};
  const LeaseTerms terms{.most_tokens = *magnitude(limit.capacity()), .time_to_live = *step_forward(limit)};
  Lease one{bucket, terms};
  Lease other{bucket, terms};
  struct Moment {
    Instant now;
    std::int64_t in_leases;
    detail::int128 spent_before;
  };
  std::vector<Moment> moments;
  detail::int128 spent = 0;
  Instant now = start;
  for (int call = 0; call < 40; ++call) {
    now = std::min(now + *step_forward(limit), bucket.last());
    moments.push_back({now, one.left() + other.left(), spent});
    const Cost cost = *any_cost(limit);
    if ((*rc::gen::arbitrary<bool>() ? one : other).acquire(now, cost)) spent += cost.tokens();
    for (const Moment& first : moments) {
      const detail::int128 granted =
          limit.capacity_units() + detail::int128{(now - first.now).count()} * limit.refill();
      RC_ASSERT((spent - first.spent_before - first.in_leases) * limit.units_per_token() <= granted);
    }
  }
}

BOOST_AUTO_TEST_CASE(tokens_that_outlive_their_time_are_handed_back) {
  const Limit limit = Limit::make(100, 1, Micros{1'000'000'000}).value();
  AtomicBucket bucket{limit, start};
  Lease lease{bucket, {.most_tokens = 10, .time_to_live = Micros{1'000}}};
  BOOST_TEST(lease.acquire(start));
  BOOST_TEST(lease.left() == 9);
  BOOST_TEST(bucket.look(start).remaining(limit) == 90);
  BOOST_TEST(lease.acquire(start + Micros{1'000}, Cost::make(20).value()));
  BOOST_TEST(lease.left() == 0);
  BOOST_TEST(bucket.look(start + Micros{1'000}).remaining(limit) == 79);
}

BOOST_AUTO_TEST_CASE(threads_with_leases_spend_the_capacity_and_no_token_more_or_less) {
  const Limit limit = Limit::make(50'000, 1, Micros{1'000'000}).value();
  AtomicBucket bucket{limit, start};
  std::atomic<std::int64_t> spent{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      Lease lease{bucket, {.most_tokens = 64, .time_to_live = Micros{1'000}}};
      std::int64_t mine = 0;
      while (lease.acquire(start)) ++mine;
      spent += mine;
    });
  }
  for (auto& caller : callers) caller.join();
  BOOST_TEST(spent == 50'000);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
