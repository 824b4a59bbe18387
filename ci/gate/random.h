#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>

namespace weir::gate {

/// Random choices that are the same everywhere for the same seed: std::mt19937_64 is specified to the
/// bit, the standard's distributions are not. Not thread safe.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// A whole number from 0 to count - 1. Precondition: count > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t count) {
    assert(count > 0);
    __extension__ using uint128 = unsigned __int128;
    return static_cast<std::uint64_t>((uint128{engine_()} * count) >> 64);
  }

  /// A whole number in [least, most].
  [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most) {
    assert(least <= most);
    return least + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most - least) + 1));
  }

  [[nodiscard]] bool percent(std::uint64_t chance) { return below(100) < chance; }

  template <class T>
  [[nodiscard]] const T& one_of(std::span<const T> choices) {
    return choices[static_cast<std::size_t>(below(choices.size()))];
  }
  template <class T>
  [[nodiscard]] T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace weir::gate
