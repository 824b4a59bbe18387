#pragma once

#include "proptests/harness/contract.h"
#include "weir/time.h"

namespace weir::gate {

using harness::Range;

/// 2026-01-01 00:00:00 UTC: where a history begins that does not care when.
inline constexpr Instant usual_start{Micros{1'767'225'600'000'000}};

/// What a contract claims, in the terms of the generator and the shrinker: everything that is tried
/// on a limiter lies in it, except bad input.
struct Domain {
  Range capacity;
  Range refill;
  Range period_us;
  Range cost;         // of valid calls; 0 (a peek) only where `least` is 0
  Micros tick;        // the clock is moved in whole ticks: the unit of the clock that the limiter reads
  Micros resolution;  // of the times that it replies
  bool fixed_window = false;
  bool own_rules = false;  // state = "weir": promises DESIGN 2's rules to the letter, fractions refused

  [[nodiscard]] bool one_period() const noexcept { return period_us.least == period_us.most; }
};

[[nodiscard]] Domain domain_of(const harness::Contract& contract);

}  // namespace weir::gate
