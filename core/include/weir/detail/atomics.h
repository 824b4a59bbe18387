#pragma once

#include <atomic>

namespace weir::detail {

/// What our lock-free code calls atomic. It is written once, over such a policy, so that a model
/// checker runs the very text that ships: proptests/relacy brings a policy of its own.
///
/// An `Atomic<T>` has load, store, compare_exchange_weak, compare_exchange_strong, fetch_add,
/// fetch_or, each with its memory order spelled out.
struct StdAtomics {
  template <class T>
  using Atomic = std::atomic<T>;

  /// One turn of a spin: the other side is a few instructions from done.
  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
};

}  // namespace weir::detail
