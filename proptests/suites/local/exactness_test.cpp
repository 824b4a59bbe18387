// Buckets in process, decision by decision, against an oracle in 128 bits that is itself held to the model.
// As a ctest 50,000 decisions for each of 20 limits; by hand, any number a limit: local_exactness_test -- 1000000000

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "model/bucket.h"
#include "weir/atomic_bucket.h"

namespace weir {
namespace {

__extension__ using int128 = __int128;

constexpr Instant start{Micros{1'767'225'600'000'000}};  // 2026-01-01

std::vector<Limit> limits() {
  constexpr std::int64_t second = 1'000'000;
  constexpr std::int64_t day = 86'400 * second;
  constexpr std::int64_t most_capacity = std::int64_t{1} << 31;
  const auto make = [](std::int64_t capacity, std::int64_t refill, std::int64_t period_us) {
    return Limit::make(capacity, refill, Micros{period_us}).value();
  };
  return {make(1, 3, day),
          make(3, 3, day),
          make(10, 1, 60 * second),
          make(1, 1, second),
          make(5, 7, second),
          make(10, 10, second),
          make(310, 100, second),
          make(1'000, 60, 60 * second),
          make(2, 1, 1'000'003),
          make(65'537, 1'009, second),
          make(1 << 20, 1'000, second),
          make(26'062, 100'003, day),
          make(50'000, 123'457, second),
          make(7, 1'000'003, second),
          make(1'000'000, 1'000'000, second),
          make(most_capacity, 1, 1),
          make(most_capacity, 999'983, second),
          make(1, 999'999'937, second),
          make(1'000, 999'999'937, second),
          make(most_capacity, 999'999'937, second)};
}

/// A bucket that counts what is left, in 1/P of a token, and nothing cleverer.
class Oracle {
 public:
  explicit Oracle(const Limit& limit)
      : refill_(limit.refill()), unit_(limit.period().count()), full_(int128{limit.capacity()} * unit_), left_(full_) {}

  Decision acquire(Instant now, std::int64_t cost) {
    left_ = std::min(full_, left_ + int128{(now - last_).count()} * refill_);
    last_ = now;
    const int128 price = cost * unit_;
    if (price > full_) return told(Outcome::never, std::nullopt);
    if (price > left_) return told(Outcome::denied, up(price - left_));
    left_ -= price;
    return told(Outcome::allowed, Micros{0});
  }

 private:
  [[nodiscard]] Micros up(int128 units) const {
    return Micros{static_cast<std::int64_t>((units + refill_ - 1) / refill_)};
  }
  [[nodiscard]] Decision told(Outcome outcome, std::optional<Micros> retry) const {
    return {outcome, static_cast<std::int64_t>(left_ / unit_), retry, up(full_ - left_)};
  }

  int128 refill_;
  int128 unit_;
  int128 full_;
  int128 left_;
  Instant last_ = start;
};

struct Request {
  Instant now;
  std::int64_t cost;
};

/// At an instant that matters: now, a microsecond on, where the last answer flips, or one beside it.
Request next_request(const Limit& limit, Instant now, const Decision& last, std::uint64_t random) {
  const std::int64_t flips = (last.outcome == Outcome::denied ? *last.retry_after : limit.emission_interval()).count();
  const std::int64_t steps[] = {0, 0, 1, flips, flips - 1, flips + 1, flips / 3, last.reset_after.count()};
  const std::int64_t costs[] = {1, 1, 1, 2, 0, last.remaining, last.remaining + 1, limit.capacity() / 2 + 1};
  return {now + Micros{steps[random % 8]}, costs[random / 8 % 8]};
}

/// `count` requests beside the oracle; what differs fails the case. `begin()` gives a full bucket as of `start`, to be
/// asked by `(now, cost)`: a new one whenever time has run to `end`.
template <class Begin>
void hold_to_the_oracle(const Limit& limit, Instant end, std::int64_t count, Begin begin) {
  std::int64_t allowed = 0;
  std::int64_t denied = 0;
  std::mt19937_64 engine{20'260'101};
  for (std::int64_t done = 0; done < count;) {
    auto ask = begin();
    Oracle oracle{limit};
    Decision last = oracle.acquire(start, 0);
    for (Instant now = start; done < count; ++done) {
      const Request request = next_request(limit, now, last, engine());
      now = request.now;
      if (now > end) break;
      last = oracle.acquire(now, request.cost);
      allowed += last.allowed();
      denied += last.outcome == Outcome::denied;
      if (ask(now, Cost::make(request.cost).value()) == last) continue;
      BOOST_ERROR("request " << done + 1 << " of " << limit.capacity() << " tokens, " << limit.refill() << " per "
                             << limit.period().count() << " us, is decided otherwise than by the oracle");
      return;
    }
  }
  BOOST_TEST(allowed > count / 10);
  BOOST_TEST(denied > count / 10);
}

std::int64_t decisions_a_limit() {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  return suite.argc > 1 ? std::atoll(suite.argv[1]) : 50'000;
}

BOOST_AUTO_TEST_SUITE(local_exactness)

BOOST_AUTO_TEST_CASE(the_oracle_decides_as_the_model_does) {
  const auto count = std::min<std::int64_t>(decisions_a_limit() / 25, 1'000'000);
  for (const Limit& limit : limits()) {
    const auto begin = [&] {
      return [&limit, state = model::init()](Instant now, Cost cost) mutable {
        const model::Output output = model::step(state, {limit, now, cost});
        state = output.after;
        return output.decision;
      };
    };
    hold_to_the_oracle(limit, max_instant, count, begin);
  }
}

/// `Bucket`s of `limit`, by which `begin()` begins.
template <class Bucket>
auto buckets(const Limit& limit) {
  return [&limit] {
    return [&limit, bucket = std::make_unique<Bucket>(limit, start)](Instant now, Cost cost) {
      return bucket->acquire(now, cost).decision(limit);
    };
  };
}

BOOST_AUTO_TEST_CASE(sixteen_bytes_decide_every_limit_exactly) {
  for (const Limit& limit : limits()) {
    hold_to_the_oracle(limit, max_instant, decisions_a_limit(), buckets<WideAtomicBucket>(limit));
  }
}

BOOST_AUTO_TEST_CASE(one_word_decides_every_limit_that_fits_it_exactly_up_to_its_horizon) {
  int fitting = 0;
  for (const Limit& limit : limits()) {
    if (!fits_one_word(limit)) continue;
    ++fitting;
    const Instant end = AtomicBucket{limit, start}.last();
    hold_to_the_oracle(limit, end, decisions_a_limit(), buckets<AtomicBucket>(limit));
  }
  BOOST_TEST(fitting >= 12);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
