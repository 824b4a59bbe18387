#include "weir/atomic_bucket.h"

#include <rapidcheck/boost_test.h>
#include <sys/mman.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "proptests/suites/local/generators.h"
#include "weir/bucket.h"

namespace weir {
namespace {

using namespace local_suite;

constexpr Instant start{Micros{1'750'000'000'000'000}};

Limit limit_of(std::int64_t capacity, std::int64_t refill, std::int64_t period_us) {
  return Limit::make(capacity, refill, Micros{period_us}).value();
}

/// One random life of a bucket, `decide()` beside it.
template <class AnyBucket>
void lives_as_decide_says(const Limit& limit) {
  AnyBucket bucket{limit, start};
  std::optional<Bucket> stored;
  Instant now = start;
  const int calls = *rc::gen::inRange(1, 60);
  for (int call = 0; call < calls; ++call) {
    now = std::min(now + *step_forward(limit), bucket.last());
    const Cost cost = *any_cost(limit);
    const Step expected = decide(limit, stored, now, cost);
    if (expected.write) stored = expected.write;
    RC_ASSERT(bucket.look(now, cost).decision(limit).outcome == expected.decision.outcome);
    RC_ASSERT(bucket.acquire(now, cost).decision(limit) == expected.decision);
    RC_ASSERT(bucket.state(now).debt == debt_at(limit, stored, now));
  }
}

BOOST_AUTO_TEST_SUITE(bucket_suite)

RC_BOOST_PROP(one_word_decides_as_decide_does, ()) {
  lives_as_decide_says<AtomicBucket>(*one_word_limit());
}
RC_BOOST_PROP(one_word_confined_decides_as_decide_does, ()) {
  lives_as_decide_says<ConfinedBucket>(*one_word_limit());
}
RC_BOOST_PROP(two_words_decide_as_decide_does, ()) {
  lives_as_decide_says<WideAtomicBucket>(*any_limit());
}
RC_BOOST_PROP(two_words_confined_decide_as_decide_does, ()) {
  lives_as_decide_says<WideConfinedBucket>(*any_limit());
}

RC_BOOST_PROP(a_clock_that_runs_back_earns_nothing, ()) {
  const Limit limit = *one_word_limit();
  AtomicBucket bucket{limit, start};
  Instant now = start + Micros{1'000'000'000};
  Instant furthest = now;
  std::int64_t admitted = 0;
  for (int call = 0; call < 40; ++call) {
    const Micros step = *step_forward(limit);
    now = *rc::gen::arbitrary<bool>() ? std::max(start, now - step) : std::min(now + step, bucket.last());
    furthest = std::max(furthest, now);
    const Cost cost = *any_cost(limit);
    if (bucket.acquire(now, cost).allowed()) admitted += cost.tokens();
  }
  const detail::int128 earned = detail::int128{(furthest - start).count()} * limit.refill();
  RC_ASSERT(detail::int128{admitted} * limit.units_per_token() <= limit.capacity_units() + earned);
}

RC_BOOST_PROP(a_reservation_waits_exactly_until_its_tokens_are_there, ()) {
  const Limit limit = *one_word_limit();
  AtomicBucket bucket{limit, start};
  const Cost taken = *any_cost(limit);
  const Answer first = bucket.acquire(start, taken);
  const Cost cost = *any_cost(limit);
  const Answer told = bucket.look(start, cost);
  const Answer reserved = bucket.reserve(start, cost, limit.time_to_full());
  if (cost.tokens() > limit.capacity()) {
    RC_ASSERT(reserved.outcome() == Outcome::never);
    return;
  }
  RC_ASSERT(reserved.allowed());
  RC_ASSERT(reserved.wait(limit) == *told.retry_after(limit));
  RC_ASSERT(first.allowed() || first.outcome() == Outcome::never);
}

RC_BOOST_PROP(a_reservation_that_would_wait_past_its_patience_is_refused_and_costs_nothing, ()) {
  const Limit limit = *one_word_limit();
  ConfinedBucket bucket{limit, start};
  RC_ASSERT(bucket.acquire(start, Cost::make(limit.capacity()).value()).allowed());
  const Cost cost = Cost::make(*magnitude(limit.capacity())).value();
  const Micros wait = *bucket.look(start, cost).retry_after(limit);
  const Bucket before = bucket.state(start);
  RC_ASSERT(!bucket.reserve(start, cost, wait - Micros{1}).allowed());
  RC_ASSERT(bucket.state(start) == before);
  RC_ASSERT(bucket.reserve(start, cost, wait).wait(limit) == wait);
}

RC_BOOST_PROP(a_refund_takes_the_debt_down_by_its_tokens_and_not_below_zero, ()) {
  const Limit limit = *any_limit();
  WideAtomicBucket bucket{limit, start};
  static_cast<void>(bucket.acquire(start, *any_cost(limit)));
  const Instant now = start + *step_forward(limit);
  const std::int64_t owed = bucket.state(now).debt;
  const Cost back = *any_cost(limit);
  bucket.refund(now, back);
  const detail::int128 given = detail::int128{back.tokens()} * limit.units_per_token();
  RC_ASSERT(bucket.state(now).debt == std::max<detail::int128>(0, owed - given));
}

RC_BOOST_PROP(a_bucket_goes_on_from_a_stored_one_under_any_limit, ()) {
  const Limit before = *any_limit();
  const Limit after = *any_limit();
  const Bucket stored{*magnitude(before.capacity_units()) - 1, start, before.refill(), before.period().count()};
  const Instant now = start + *step_forward(before);
  WideAtomicBucket bucket{after, stored, now};
  RC_ASSERT(bucket.state(now).debt == debt_at(after, stored, now));
}

BOOST_AUTO_TEST_CASE(a_denial_and_a_peek_store_nothing) {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  BOOST_REQUIRE(page != MAP_FAILED);
  const Limit limit = limit_of(1, 1, 1'000'000'000);
  const auto refused_without_a_trace = [&](auto& bucket) {
    BOOST_REQUIRE(bucket.acquire(start).allowed());
    BOOST_REQUIRE(::mprotect(page, 4096, PROT_READ) == 0);
    int denied = 0;
    for (int call = 0; call < 1'000'000; ++call) denied += !bucket.acquire(start + Micros{call}).allowed();
    BOOST_TEST(bucket.acquire(start, peek).allowed());
    BOOST_TEST(denied == 1'000'000);
    BOOST_REQUIRE(::mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
  };
  refused_without_a_trace(*new (page) AtomicBucket{limit, start});
  refused_without_a_trace(*new (page) WideAtomicBucket{limit, start});
  ::munmap(page, 4096);
}

BOOST_AUTO_TEST_CASE(a_limit_past_one_word_is_refused_by_the_narrow_and_held_by_the_wide) {
  const Limit fast = limit_of(1'000'000, 999'999'937, 1'000'000);
  BOOST_TEST(!fits_one_word(fast));
  BOOST_CHECK_THROW((AtomicBucket{fast, start}), std::invalid_argument);
  BOOST_CHECK_NO_THROW((WideAtomicBucket{fast, start}));
  BOOST_TEST(fits_one_word(limit_of(100, 100, 1'000'000)));
  BOOST_TEST(fits_one_word(limit_of(std::int64_t{1} << 14, 1, 86'400'000'000)));
}

BOOST_AUTO_TEST_CASE(past_its_horizon_a_bucket_refuses_for_ever_and_says_so) {
  const Limit limit = limit_of(10, 7'919, 1'000'000);
  AtomicBucket bucket{limit, start};
  BOOST_TEST(bucket.acquire(bucket.last()).allowed());
  BOOST_CHECK(bucket.acquire(bucket.last() + Micros{1}).outcome() == Outcome::never);
  BOOST_TEST(!bucket.acquire(bucket.last() + Micros{1}).retry_after(limit).has_value());
}

BOOST_AUTO_TEST_CASE(an_instant_before_the_epoch_is_held_at_the_epoch) {
  const Limit limit = limit_of(2, 1, 1'000'000);
  AtomicBucket bucket{limit, start};
  BOOST_TEST(bucket.acquire(start - Micros{5'000'000}).allowed());
  BOOST_TEST(bucket.acquire(start).allowed());
  BOOST_TEST(!bucket.acquire(start).allowed());
}

template <class SharedBucket>
void admits_exactly(const Limit& limit) {
  constexpr int threads = 4;
  constexpr int steps = 20'000;
  SharedBucket bucket{limit, start};
  std::atomic<std::int64_t> microsecond{0};
  std::atomic<std::int64_t> admitted{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < threads; ++caller) {
    callers.emplace_back([&, caller] {
      std::int64_t mine = 0;
      for (int step = 0; step < steps; ++step) {
        const Instant now = start + Micros{microsecond.fetch_add(1, std::memory_order_relaxed)};
        const Cost cost = Cost::make(1 + (caller + step) % 3).value();
        if (bucket.acquire(now, cost).allowed()) mine += cost.tokens();
        if (step % 64 == 0 && bucket.reserve(now, cost, Micros{0}).allowed()) bucket.refund(now, cost);
      }
      admitted += mine;
    });
  }
  for (auto& caller : callers) caller.join();
  const detail::int128 earned = detail::int128{microsecond.load()} * limit.refill();
  BOOST_TEST((detail::int128{admitted.load()} * limit.units_per_token() <= limit.capacity_units() + earned));
  // Callers ask for far more than there is, so all of it but less than one request's worth is taken.
  BOOST_TEST((detail::int128{admitted.load() + 3 + threads * 3} * limit.units_per_token() >=
              std::min<detail::int128>(earned, limit.capacity_units())));
}

BOOST_AUTO_TEST_CASE(threads_never_take_more_than_the_limit_from_one_word) {
  admits_exactly<AtomicBucket>(limit_of(100, 100'000, 1'000'000));
}

BOOST_AUTO_TEST_CASE(threads_never_take_more_than_the_limit_from_two_words) {
  admits_exactly<WideAtomicBucket>(limit_of(100, 123'457, 1'000'000));
}

BOOST_AUTO_TEST_CASE(threads_at_one_instant_take_the_capacity_and_no_token_more_or_less) {
  const Limit limit = limit_of(5'000, 1, 1'000'000);
  AtomicBucket bucket{limit, start};
  std::atomic<int> admitted{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int call = 0; call < 2'000; ++call) admitted += bucket.acquire(start).allowed();
    });
  }
  for (auto& caller : callers) caller.join();
  BOOST_TEST(admitted == 5'000);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
