#pragma once

#include <cassert>
#include <cstdint>

namespace weir::detail {

__extension__ using int128 = __int128;  // -Wpedantic does not know it

/// Quotient rounded toward the limiter: waits and debts are never told too small.
/// Preconditions: dividend >= 0, divisor > 0.
template <class Integer>
[[nodiscard]] constexpr Integer ceil_div(Integer dividend, Integer divisor) noexcept {
  assert(dividend >= 0);
  assert(divisor > 0);
  return dividend / divisor + (dividend % divisor == 0 ? 0 : 1);
}

/// Quotient rounded toward the limiter: tokens left are never told too many.
/// Preconditions: dividend >= 0, divisor > 0.
template <class Integer>
[[nodiscard]] constexpr Integer floor_div(Integer dividend, Integer divisor) noexcept {
  assert(dividend >= 0);
  assert(divisor > 0);
  return dividend / divisor;
}

}  // namespace weir::detail
