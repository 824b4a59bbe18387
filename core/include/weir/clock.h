#pragma once

#include <time.h>

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <thread>

#include "weir/decision.h"
#include "weir/time.h"

namespace weir {

/// Where a limiter in process takes its time from, when the caller does not bring it: a policy with
/// `Instant now()`, microseconds rounded down, callable from any thread.
///
/// What a clock costs is most of what a limiter in process costs (one two-core EPYC guest):
/// caller's `now` 0 ns, `CoarseClock` 5, `TscClock` (tsc_clock.h) 10, `SteadyClock` 24; a whole
/// allowed request without its clock is 3.
template <class T>
concept Clock = requires(T& clock) {
  { clock.now() } -> std::same_as<Instant>;
};

/// CLOCK_MONOTONIC: the reference. Never runs back, on any thread.
struct SteadyClock {
  [[nodiscard]] Instant now() const noexcept {
    const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
    return Instant{std::chrono::floor<Micros>(since_boot)};
  }
};

/// CLOCK_MONOTONIC_COARSE: the same time line, late by up to a timer tick (1 to 10 ms). A decision
/// by it is the exact decision at an instant that much earlier.
struct CoarseClock {
  [[nodiscard]] Instant now() const noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return Instant{Micros{std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000}};
  }
};

/// Any clock, held at its high-water mark: what one thread was told, no thread is told less.
/// For clocks that can be thrown back, such as the wall's. Costs a shared word that is written as
/// often as the microsecond changes; steady clocks do not need it.
template <Clock Source>
class HeldClock {
 public:
  explicit HeldClock(Source source = Source{}) noexcept : source_(source) {}

  [[nodiscard]] Instant now() noexcept {
    const std::int64_t read = source_.now().time_since_epoch().count();
    std::int64_t highest = highest_.load(std::memory_order_relaxed);
    while (highest < read) {
      if (highest_.compare_exchange_weak(highest, read, std::memory_order_relaxed)) return Instant{Micros{read}};
    }
    return Instant{Micros{highest}};
  }

 private:
  Source source_;
  alignas(64) std::atomic<std::int64_t> highest_{0};
};

/// Takes `cost` tokens, sleeping until they are there, but no longer than `patience`: then nothing
/// is taken and the answer is a denial, at once. Waiters are served in the order in which they
/// called (each holds a reservation, so nobody who comes later can pass), and a waiter is late by
/// what its clock and the scheduler are late. `clock` and std::this_thread must keep the same pace.
///
/// An event loop does the same without a thread: `bucket.reserve(now, cost, patience)`, then a
/// timer of `answer.wait(limit)`; whoever gives up refunds.
/// Thread safety: as of bucket and clock. Source: DESIGN, section 2, rule 8.
template <class Bucket, Clock Source>
[[nodiscard]] auto acquire_within(Bucket& bucket, Source& clock, Cost cost, Micros patience) {
  const auto answer = bucket.reserve(clock.now(), cost, patience);
  if (answer.allowed()) std::this_thread::sleep_for(answer.wait(bucket.limit()));
  return answer;
}

}  // namespace weir
