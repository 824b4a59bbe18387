#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weir/decision.h"
#include "weir/limit.h"
#include "weir/time.h"

namespace weir::model {

/// A number as a caller writes it. Whole where it can be; else text, because bad input has no other
/// form: "1.5", "nan", "1e300", "abc", "".
struct Quantity {
  std::int64_t whole = 0;
  std::optional<std::string> odd;  // set: `whole` means nothing

  Quantity() = default;
  Quantity(std::int64_t number) : whole(number) {}
  explicit Quantity(std::string text) : odd(std::move(text)) {}

  [[nodiscard]] bool is_whole() const noexcept { return !odd; }
  [[nodiscard]] std::string text() const { return odd ? *odd : std::to_string(whole); }
  bool operator==(const Quantity&) const = default;
};

/// A limit as a caller writes it; valid or not.
struct Plan {
  Quantity capacity{1};
  Quantity refill{1};
  Quantity period_us{1'000'000};

  /// The limit it is, where it is one.
  [[nodiscard]] std::optional<Limit> limit() const {
    if (!capacity.is_whole() || !refill.is_whole() || !period_us.is_whole()) return std::nullopt;
    const auto made = Limit::make(capacity.whole, refill.whole, Micros{period_us.whole});
    return made ? std::optional{made.value()} : std::nullopt;
  }
  bool operator==(const Plan&) const = default;
};

/// One call, and how far the clock moves before it.
struct TimedCall {
  std::int64_t advance_us = 0;  // negative: the clock steps back
  int tenant = 0;               // 0, 1, ...: whose bucket
  int plan = 0;                 // index into Scenario::plans
  Quantity cost{1};

  bool operator==(const TimedCall&) const = default;
};

/// One thing to try on a limiter, one call after the other: plain data, replayed exactly.
/// Buckets are fresh when it begins.
struct Scenario {
  Instant start;
  std::vector<Plan> plans;
  std::vector<TimedCall> calls;

  [[nodiscard]] const Plan& plan_of(const TimedCall& call) const { return plans[static_cast<std::size_t>(call.plan)]; }
  bool operator==(const Scenario&) const = default;
};

/// The cost of a call where it is one: whole, 0 to 2^51.
[[nodiscard]] inline std::optional<Cost> cost_of(const TimedCall& call) {
  if (!call.cost.is_whole()) return std::nullopt;
  const auto made = Cost::make(call.cost.whole);
  return made ? std::optional{made.value()} : std::nullopt;
}

}  // namespace weir::model
