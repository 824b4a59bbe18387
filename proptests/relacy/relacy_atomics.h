#pragma once

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <type_traits>

#pragma push_macro("errno")
#include <relacy/relacy.hpp>
#pragma pop_macro("errno")

// Relacy takes these words over for whole programs; we hand it our atomics by a policy instead.
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert

namespace weir::relacy {

/// Our atomics policy (core/include/weir/detail/atomics.h) on Relacy's atomics: it runs the shipped
/// text under the C++ memory model, with every value a relaxed load may see. What it does not model:
/// load buffering (a load that sees a store which only comes about because of it), and accesses of
/// mixed size.
struct Atomics {
  template <class T>
  class Atomic {
    // Relacy does not know pointers to const.
    using Raw = std::conditional_t<std::is_pointer_v<T>, std::uintptr_t, T>;

   public:
    Atomic() { store(T{}, std::memory_order_relaxed); }
    explicit Atomic(T value) { store(value, std::memory_order_relaxed); }
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    [[nodiscard]] T load(std::memory_order order) const { return cooked(value_.load(translate(order), RL_INFO)); }
    void store(T value, std::memory_order order) { value_.store(raw(value), translate(order), RL_INFO); }
    T exchange(T value, std::memory_order order) {
      return value_.rmw(rl::rmw_type_t<rl::rmw_type_swap>(), value, translate(order), RL_INFO);
    }
    T fetch_add(T value, std::memory_order order) {
      return value_.rmw(rl::rmw_type_t<rl::rmw_type_add>(), value, translate(order), RL_INFO);
    }
    T fetch_sub(T value, std::memory_order order) {
      return value_.rmw(rl::rmw_type_t<rl::rmw_type_sub>(), value, translate(order), RL_INFO);
    }
    T fetch_or(T value, std::memory_order order) {
      return value_.rmw(rl::rmw_type_t<rl::rmw_type_or>(), value, translate(order), RL_INFO);
    }
    bool compare_exchange_weak(T& seen, T next, std::memory_order success, std::memory_order failure) {
      return value_.compare_exchange(rl::bool_t<true>(), seen, next, translate(success), translate(failure), RL_INFO);
    }
    bool compare_exchange_strong(T& seen, T next, std::memory_order success, std::memory_order failure) {
      return value_.compare_exchange(rl::bool_t<false>(), seen, next, translate(success), translate(failure), RL_INFO);
    }

   private:
    [[nodiscard]] static rl::memory_order translate(std::memory_order order) {
      switch (order) {
        case std::memory_order_relaxed: return rl::mo_relaxed;
        case std::memory_order_consume: return rl::mo_consume;
        case std::memory_order_acquire: return rl::mo_acquire;
        case std::memory_order_release: return rl::mo_release;
        case std::memory_order_acq_rel: return rl::mo_acq_rel;
        case std::memory_order_seq_cst: break;
      }
      return rl::mo_seq_cst;
    }

    [[nodiscard]] static Raw raw(T value) { return std::bit_cast<Raw>(value); }
    [[nodiscard]] static T cooked(Raw value) { return std::bit_cast<T>(value); }

    rl::atomic<Raw> value_;
  };

  static void pause() { rl::yield(1, RL_INFO); }
};

}  // namespace weir::relacy
