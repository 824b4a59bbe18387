#include "weir/clock.h"

#include <rapidcheck/boost_test.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>
#include <vector>

#include "weir/atomic_bucket.h"
#include "weir/detail/disciplined_time.h"
#include "weir/tsc_clock.h"

namespace weir {
namespace {

/// A counter and a reference that go as the test says.
struct Bench {
  double ticks_per_ns = 2.6;
  double steady_pace = 1.0;  // how fast the reference passes, as NTP slews it
  bool trusted = true;

  double counted = 1e9;
  double steady = 1e9;

  void pass(std::int64_t ns) {
    counted += static_cast<double>(ns) * ticks_per_ns;
    steady += static_cast<double>(ns) * steady_pace;
  }
};

struct BenchSource {
  Bench* bench;
  std::uint64_t ticks() { return static_cast<std::uint64_t>(bench->counted += 20); }
  std::int64_t steady_ns() { return static_cast<std::int64_t>(bench->steady += 25); }
  bool trusted() { return bench->trusted; }
};

using BenchTime = detail::DisciplinedTime<BenchSource>;

std::int64_t us(Instant instant) {
  return instant.time_since_epoch().count();
}
std::int64_t steady_us(const Bench& bench) {
  return static_cast<std::int64_t>(bench.steady / 1000);
}

void warm_up(Bench& bench, BenchTime& time) {
  bench.pass(11'000'000);
  static_cast<void>(time.now());
  BOOST_REQUIRE(time.counting());
}

BOOST_AUTO_TEST_SUITE(clock_suite)

RC_BOOST_PROP(disciplined_time_never_runs_back_and_stays_by_the_reference, ()) {
  Bench bench;
  bench.ticks_per_ns = *rc::gen::element(1.0, 2.4, 2.6, 5.0);
  BenchTime time{BenchSource{&bench}};
  Instant last = time.now();
  for (int reading = 0; reading < 200; ++reading) {
    bench.steady_pace = *rc::gen::element(1.0, 1.0, 1.0005, 0.9995);
    bench.pass(*rc::gen::weightedElement<std::int64_t>(
        {{5, 400}, {5, 1'000'000}, {5, 30'000'000}, {3, 99'000'000}, {3, 101'000'000}, {1, 3'600'000'000'000}}));
    const Instant now = time.now();
    RC_ASSERT(now >= last);
    // 500 ppm of slew over one segment of 100 ms, both ways, and the measuring itself.
    RC_ASSERT(std::abs(us(now) - steady_us(bench)) <= 110);
    last = now;
  }
  RC_ASSERT(time.counting());
}

BOOST_AUTO_TEST_CASE(a_counter_that_changes_its_pace_is_given_up_for_good) {
  Bench bench;
  BenchTime time{BenchSource{&bench}};
  warm_up(bench, time);
  bench.ticks_per_ns = 3.1;
  const Instant before = time.now();
  bench.pass(150'000'000);
  BOOST_CHECK(time.now() >= before);
  BOOST_TEST(!time.counting());
  bench.ticks_per_ns = 2.6;
  bench.pass(1'000'000'000);
  BOOST_TEST(!time.counting());
  BOOST_TEST(std::abs(us(time.now()) - steady_us(bench)) <= 1);
}

BOOST_AUTO_TEST_CASE(a_counter_that_is_reset_is_given_up_without_running_back) {
  Bench bench;
  BenchTime time{BenchSource{&bench}};
  warm_up(bench, time);
  bench.pass(50'000'000);
  const Instant before = time.now();
  bench.counted = 12'345;
  BOOST_CHECK(time.now() >= before);
  BOOST_TEST(!time.counting());
}

BOOST_AUTO_TEST_CASE(a_counter_the_kernel_no_longer_trusts_is_given_up) {
  Bench bench;
  BenchTime time{BenchSource{&bench}};
  warm_up(bench, time);
  bench.trusted = false;
  bench.pass(150'000'000);
  static_cast<void>(time.now());
  BOOST_TEST(!time.counting());
}

BOOST_AUTO_TEST_CASE(an_untrusted_counter_is_never_used) {
  Bench bench;
  bench.trusted = false;
  BenchTime time{BenchSource{&bench}};
  bench.pass(1'000'000'000);
  BOOST_TEST(us(time.now()) == steady_us(bench));
  BOOST_TEST(!time.counting());
}

BOOST_AUTO_TEST_CASE(the_machines_counter_agrees_with_its_steady_clock_on_every_thread) {
  TscClock tsc;
  std::vector<std::thread> readers;
  std::atomic<int> ran_back{0};
  std::atomic<int> apart{0};
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      const Instant end = SteadyClock{}.now() + Micros{350'000};
      Instant last{};
      while (SteadyClock{}.now() < end) {
        const Instant before = SteadyClock{}.now();
        const Instant now = tsc.now();
        const Instant after = SteadyClock{}.now();
        if (now + Micros{1} < last) ++ran_back;
        if (now + Micros{100} < before || now > after + Micros{100}) ++apart;
        last = now;
      }
    });
  }
  for (auto& reader : readers) reader.join();
  BOOST_TEST(ran_back == 0);
  BOOST_TEST(apart == 0);
}

struct ScriptedClock {
  std::vector<std::int64_t> readings;
  std::size_t next = 0;
  Instant now() { return Instant{Micros{readings.at(next++)}}; }
};

BOOST_AUTO_TEST_CASE(a_held_clock_stands_at_its_high_water_mark) {
  HeldClock clock{ScriptedClock{{5, 9, 3, 9, 10}}};
  for (const std::int64_t expected : {5, 9, 9, 9, 10}) BOOST_TEST(us(clock.now()) == expected);
}

BOOST_AUTO_TEST_CASE(the_coarse_clock_is_on_the_steady_time_line_and_late) {
  const Instant coarse = CoarseClock{}.now();
  BOOST_CHECK(coarse <= SteadyClock{}.now());
}

BOOST_AUTO_TEST_CASE(whoever_waits_within_his_patience_is_served_and_others_are_refused_at_once) {
  const Limit limit = Limit::make(1, 1'000, Micros{1'000'000}).value();
  ScriptedClock clock{{7, 7, 7}};
  AtomicBucket bucket{limit, Instant{}};
  BOOST_TEST(acquire_within(bucket, clock, one_token, Micros{0}).allowed());
  BOOST_TEST(!acquire_within(bucket, clock, one_token, Micros{999}).allowed());
  const auto before = std::chrono::steady_clock::now();
  const Answer answer = acquire_within(bucket, clock, one_token, Micros{1'000});
  BOOST_TEST(answer.allowed());
  BOOST_CHECK(answer.wait(limit) == Micros{1'000});
  BOOST_CHECK(std::chrono::steady_clock::now() - before >= Micros{1'000});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
