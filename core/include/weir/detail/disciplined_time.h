#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>

#include "weir/detail/atomics.h"
#include "weir/detail/integer.h"
#include "weir/detail/schedule.h"
#include "weir/time.h"

namespace weir::detail {

/// Microseconds from a counter of unknown but steady frequency, kept to a reference clock that is
/// right but slow to read.
///
/// A `Source` has
///     std::uint64_t ticks()      the counter: cheap
///     std::int64_t steady_ns()   the reference: dear, never runs back
///     bool trusted()             whether the counter may still be believed
///
/// Time is a chain of straight segments, each good for `span` ticks (about 100 ms). Whoever first
/// reads past its end measures again and begins the next one, no lower than the last one ended:
/// time that ran behind is stepped forward, time that ran ahead is slowed until the reference has
/// caught up. So the error is what the counter drifts from the reference in 100 ms: 50 µs under the
/// fastest slew NTP makes, nanoseconds otherwise. A counter off by more than `most_drift`, reset, or
/// no longer trusted is given up for good, and every reading is the reference's.
///
/// There are two slots: the next segment is written where nobody reads, then pointed to. A reader
/// goes again only if two segments were begun meanwhile, so readers never wait.
///
/// Thread safety: any thread. A thread is never told less than before by the counter; where another
/// is just measuring, it reads the reference, which can differ by a microsecond.
/// Source: DESIGN, section 6.
template <class Source, class Atomics = StdAtomics>
class DisciplinedTime {
 public:
  explicit DisciplinedTime(Source source = Source{}) : source_(source) {
    anchor_ = measure();
    look_again_ns_.store(source_.trusted() ? anchor_.steady_ns + warm_up_ns : never_ns, std::memory_order_relaxed);
  }

  [[nodiscard]] Instant now() noexcept {
    const std::uint64_t ticks = source_.ticks();
    const Segment segment = current();
    const std::uint64_t passed = ticks - segment.ticks;
    if (passed < segment.span) [[likely]]
      return segment.after(passed);
    return past_the_end(segment, ticks);
  }

  /// Whether readings come from the counter: after the first 10 ms, until it is given up.
  [[nodiscard]] bool counting() const noexcept { return current().span != 0; }

 private:
  /// A reading of both, the counter's first: the reference may be later than the ticks, never earlier.
  struct Pair {
    std::uint64_t ticks;
    std::int64_t steady_ns;
  };

  struct Segment {
    std::uint64_t ticks;     // where it begins
    std::uint64_t span;      // ticks it is good for; 0: not at all
    std::uint64_t rate;      // microseconds a tick, in 2^-64
    std::uint64_t us;        // reading where it begins
    std::uint64_t fraction;  // of a microsecond, in 2^-64

    [[nodiscard]] Instant after(std::uint64_t passed) const noexcept {
      const uint128 moved = uint128{passed} * rate + fraction;
      return Instant{Micros{static_cast<std::int64_t>(us + static_cast<std::uint64_t>(moved >> 64))}};
    }

    [[nodiscard]] uint128 end() const noexcept { return (uint128{us} << 64) + fraction + uint128{span} * rate; }
  };

  struct alignas(64) Slot {
    template <class T>
    using Atomic = typename Atomics::template Atomic<T>;
    Atomic<std::uint64_t> ticks{0}, span{0}, rate{0}, us{0}, fraction{0};
  };

  static constexpr std::int64_t warm_up_ns = 10'000'000;
  static constexpr std::int64_t segment_ns = 100'000'000;
  static constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t slack_ns = 50'000;  // two measurements, each interrupted a little
  static constexpr std::int64_t most_drift = 500;   // 1 in so many; NTP slews by 1 in 2,000, either way

  /// Every field is read with acquire and written with release: a reader that saw one field of a
  /// segment written over its own also sees the pointer moved on, and goes again.
  [[nodiscard]] Segment current() const noexcept {
    std::uint64_t number = number_.load(std::memory_order_acquire);
    for (;;) {
      const Slot& slot = slots_[number % 2];
      const Segment segment{slot.ticks.load(std::memory_order_acquire), slot.span.load(std::memory_order_acquire),
                            slot.rate.load(std::memory_order_acquire), slot.us.load(std::memory_order_acquire),
                            slot.fraction.load(std::memory_order_acquire)};
      const std::uint64_t again = number_.load(std::memory_order_relaxed);
      if (again == number) return segment;
      number = number_.load(std::memory_order_acquire);
    }
  }

  /// Precondition: the caller holds `measuring_`.
  void begin(const Segment& segment) noexcept {
    const std::uint64_t number = number_.load(std::memory_order_relaxed) + 1;
    Slot& slot = slots_[number % 2];
    slot.ticks.store(segment.ticks, std::memory_order_release);
    slot.span.store(segment.span, std::memory_order_release);
    slot.rate.store(segment.rate, std::memory_order_release);
    slot.us.store(segment.us, std::memory_order_release);
    slot.fraction.store(segment.fraction, std::memory_order_release);
    number_.store(number, std::memory_order_release);
  }

  [[nodiscard]] Instant past_the_end(Segment segment, std::uint64_t ticks) noexcept {
    const auto begins_after = [&] { return segment.ticks - ticks < segment.span; };
    // Another core's counter may be a little behind the one the segment began on.
    if (begins_after()) return segment.after(0);

    const std::int64_t steady_ns = source_.steady_ns();
    if (steady_ns >= look_again_ns_.load(std::memory_order_relaxed) &&
        !measuring_.exchange(true, std::memory_order_acquire)) {
      renew();
      measuring_.store(false, std::memory_order_release);
      segment = current();
      // Ours begins after `ticks`; one that another thread was quicker to begin may lie before.
      if (begins_after()) return segment.after(0);
      if (ticks - segment.ticks < segment.span) return segment.after(ticks - segment.ticks);
    }
    return std::max(Instant{Micros{steady_ns / 1000}}, whole_us(segment.end()));
  }

  /// Measures, judges, and begins the next segment; the caller holds `measuring_`.
  void renew() noexcept {
    const Segment last = current();
    const Pair pair = measure();
    const std::uint64_t ticks = pair.ticks - anchor_.ticks;
    const std::int64_t ns = pair.steady_ns - anchor_.steady_ns;
    // Another thread may have renewed between our reading and our turn.
    if (last.span != 0 && ticks < last.span) return;

    if (!believable(last, ticks, ns)) {
      const uint128 end = last.end();
      begin({pair.ticks, 0, 0, static_cast<std::uint64_t>(end >> 64), static_cast<std::uint64_t>(end)});
      look_again_ns_.store(never_ns, std::memory_order_relaxed);
      return;
    }

    const auto true_rate = static_cast<std::uint64_t>((uint128(ns) << 64) / (uint128{1000} * ticks));
    const auto span = static_cast<std::uint64_t>(uint128{ticks} * uint128(segment_ns) / uint128(ns));
    const uint128 reference = ((uint128(pair.steady_ns) << 64) / 1000);
    const uint128 floor = last.end();
    // Ahead of the reference: as much slower as brings us together at the end of the segment.
    const uint128 ahead = floor > reference ? (floor - reference) / span : 0;
    const auto rate = ahead < true_rate ? true_rate - static_cast<std::uint64_t>(ahead) : 0;
    const uint128 start = std::max(reference, floor);
    begin({pair.ticks, span, rate, static_cast<std::uint64_t>(start >> 64), static_cast<std::uint64_t>(start)});
    anchor_ = pair;
    last_rate_ = true_rate;
    look_again_ns_.store(0, std::memory_order_relaxed);
  }

  /// `ticks` and `ns` passed since the last measurement.
  [[nodiscard]] bool believable(const Segment& last, std::uint64_t ticks, std::int64_t ns) noexcept {
    const bool went_back = ticks > std::numeric_limits<std::uint64_t>::max() / 2;
    // A counter slower than a tick a microsecond has no such rate; none is.
    if (went_back || ns <= 0 || ticks <= static_cast<std::uint64_t>(ns) / 1000 || !source_.trusted()) return false;
    if (last.span == 0) return true;
    const auto predicted_ns = static_cast<std::int64_t>((uint128{ticks} * last_rate_ * 1000) >> 64);
    const std::int64_t drift = predicted_ns > ns ? predicted_ns - ns : ns - predicted_ns;
    return drift <= ns / most_drift + slack_ns;
  }

  /// The narrowest of a few: a reading that was interrupted says little.
  [[nodiscard]] Pair measure() noexcept {
    Pair best{};
    std::uint64_t narrowest = std::numeric_limits<std::uint64_t>::max();
    for (int attempt = 0; attempt < 5; ++attempt) {
      const std::uint64_t before = source_.ticks();
      const std::int64_t steady_ns = source_.steady_ns();
      const std::uint64_t width = source_.ticks() - before;
      if (width < narrowest) {
        narrowest = width;
        best = {before, steady_ns};
      }
    }
    return best;
  }

  [[nodiscard]] static Instant whole_us(uint128 fixed) noexcept {
    return Instant{Micros{static_cast<std::int64_t>(fixed >> 64)}};
  }

  Source source_;
  alignas(64) std::array<Slot, 2> slots_;
  typename Atomics::template Atomic<std::uint64_t> number_{0};

  // Only the thread that measures.
  alignas(64) typename Atomics::template Atomic<bool> measuring_{false};
  typename Atomics::template Atomic<std::int64_t> look_again_ns_{0};
  Pair anchor_{};
  std::uint64_t last_rate_ = 0;
};

}  // namespace weir::detail
