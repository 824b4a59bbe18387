#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "weir/limit.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

enum class Outcome : std::uint8_t {
  allowed,
  denied,  // not yet: the same request would pass after `retry_after`
  never,   // the cost is above the capacity: no wait helps
};

/// The answer to one request. Thread safety: a value. Source: DESIGN, section 2, rule 6.
struct Decision {
  Outcome outcome;

  /// Whole tokens left after the request, rounded down; 0 to capacity.
  std::int64_t remaining;

  /// Wait after which the same request passes if nobody else takes: enough, and one microsecond
  /// less is not. Zero when allowed, empty when `never`.
  std::optional<Micros> retry_after;

  /// Time until the bucket is full again, rounded up; zero when it is. At most 2 times-to-full.
  Micros reset_after;

  [[nodiscard]] constexpr bool allowed() const noexcept { return outcome == Outcome::allowed; }
  bool operator==(const Decision&) const = default;
};

/// Why a number is no cost.
struct CostError {
  std::int64_t given;
  bool operator==(const CostError&) const = default;
  [[nodiscard]] std::string message() const {
    return "cost is " + std::to_string(given) + "; it must be a whole number from 0 (a peek) to 2^51 (" +
           std::to_string(max_quantity) + ")";
  }
};

/// Tokens that one request asks for, 0 to 2^51; 0 peeks. Thread safety: a value.
class Cost {
 public:
  [[nodiscard]] static constexpr Result<Cost, CostError> make(std::int64_t tokens) noexcept {
    if (tokens < 0 || tokens > max_quantity) return Unexpected{CostError{tokens}};
    return Cost{tokens};
  }

  [[nodiscard]] constexpr std::int64_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] constexpr bool is_peek() const noexcept { return tokens_ == 0; }
  bool operator==(const Cost&) const = default;

 private:
  constexpr explicit Cost(std::int64_t tokens) noexcept : tokens_(tokens) {}
  std::int64_t tokens_;
};

inline constexpr Cost one_token = Cost::make(1).value();
inline constexpr Cost peek = Cost::make(0).value();

}  // namespace weir
