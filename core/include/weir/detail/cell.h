#pragma once

#include <atomic>
#include <cstdint>

#include "weir/detail/atomics.h"
#include "weir/detail/schedule.h"

/// Where a bucket's one number is kept. A cell has
///     Units load() const                       what it holds
///     bool replace(Units& seen, Units next)    next, if it still holds `seen`; else `seen` is renewed
/// and may fail without cause. The number says everything there is to say about a bucket and guards
/// nothing else, so no order between it and other memory is needed: every access is relaxed.

namespace weir::detail {

/// For one thread at a time; no atomics at all.
template <class Number>
class PlainCell {
 public:
  using Units = Number;

  constexpr explicit PlainCell(Units value) noexcept : value_(value) {}
  [[nodiscard]] constexpr Units load() const noexcept { return value_; }
  constexpr bool replace(Units& /*seen*/, Units next) noexcept {
    value_ = next;
    return true;
  }

 private:
  Units value_;
};

/// 64 bits, any thread. A load never writes the line it is on.
template <class Atomics>
class AtomicCell {
 public:
  using Units = std::uint64_t;

  explicit AtomicCell(Units value) noexcept : value_(value) {}
  [[nodiscard]] Units load() const noexcept { return value_.load(std::memory_order_relaxed); }
  bool replace(Units& seen, Units next) noexcept {
    return value_.compare_exchange_weak(seen, next, std::memory_order_relaxed, std::memory_order_relaxed);
  }

 private:
  typename Atomics::template Atomic<std::uint64_t> value_;
};

/// 128 bits, any thread; lock-free where the machine swaps 16 bytes at once (x86-64 and AArch64).
///
/// A tat needs 105 bits. The 22 above them count the writes, so that two equal reads of the high
/// half around one of the low half were one value: a read needs no 16-byte load, which before AVX
/// is a swap and so a write. It takes 4,194,304 writes between two neighbouring loads to mistake.
class alignas(16) WideAtomicCell {
 public:
  using Units = uint128;

  explicit WideAtomicCell(Units value) noexcept
      : low_(static_cast<std::uint64_t>(value)), high_(static_cast<std::uint64_t>(value >> 64)) {}

  [[nodiscard]] Units load() const noexcept { return tat_of(raw()); }

  bool replace(Units& seen, Units next) noexcept {
    const Units held = raw();
    if (tat_of(held) != seen) {
      seen = tat_of(held);
      return false;
    }
    const Units count = (held >> tat_bits) + 1;
    if (swap(held, (count << tat_bits) | next)) return true;
    seen = load();
    return false;
  }

 private:
  static constexpr int tat_bits = 105;

  [[nodiscard]] static Units tat_of(Units raw) noexcept { return raw & ((Units{1} << tat_bits) - 1); }

  [[nodiscard]] Units raw() const noexcept {
    for (std::uint64_t high = high_.load(std::memory_order_acquire);;) {
      const std::uint64_t low = low_.load(std::memory_order_acquire);
      const std::uint64_t again = high_.load(std::memory_order_acquire);
      if (high == again) return (Units{high} << 64) | low;
      high = again;
    }
  }

  bool swap(Units from, Units to) noexcept {
#if defined(__x86_64__)
    // Spelled out, because GCC calls libatomic for 16 bytes, and a header that needs no library should not.
    auto low = static_cast<std::uint64_t>(from);
    auto high = static_cast<std::uint64_t>(from >> 64);
    bool swapped = false;
    asm volatile("lock cmpxchg16b %[cell]"
                 : "=@ccz"(swapped), [cell] "+m"(*this), "+a"(low), "+d"(high)
                 : "b"(static_cast<std::uint64_t>(to)), "c"(static_cast<std::uint64_t>(to >> 64))
                 : "memory");
    return swapped;
#else
    return __atomic_compare_exchange_n(reinterpret_cast<Units*>(this), &from, to, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
#endif
  }

  std::atomic<std::uint64_t> low_;
  std::atomic<std::uint64_t> high_;
};

}  // namespace weir::detail
