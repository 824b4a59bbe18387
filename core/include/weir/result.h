#pragma once

#include <cassert>
#include <utility>
#include <variant>

namespace weir {

template <class E>
struct Unexpected {
  E error;
};
template <class E>
Unexpected(E) -> Unexpected<E>;

/// A value, or why there is none: bad input from outside is an answer, not an exception.
/// Spelled like C++23's `std::expected`, so that it can become that.
/// Thread safety: as of T and E.
template <class T, class E>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = E;

  constexpr Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  constexpr Result(Unexpected<E> error) : held_(std::in_place_index<1>, std::move(error.error)) {}

  [[nodiscard]] constexpr bool has_value() const noexcept { return held_.index() == 0; }
  constexpr explicit operator bool() const noexcept { return has_value(); }

  /// Precondition: `has_value()`. Throws std::bad_variant_access otherwise, so that
  /// `Limit::make(...).value()` in a constant expression does not compile for a limit that does
  /// not fit.
  [[nodiscard]] constexpr const T& value() const& { return std::get<0>(held_); }
  [[nodiscard]] constexpr T&& value() && { return std::get<0>(std::move(held_)); }
  [[nodiscard]] constexpr const T& operator*() const { return value(); }
  [[nodiscard]] constexpr const T* operator->() const { return &value(); }

  /// Precondition: not `has_value()`.
  [[nodiscard]] constexpr const E& error() const { return std::get<1>(held_); }

 private:
  std::variant<T, E> held_;
};

}  // namespace weir
