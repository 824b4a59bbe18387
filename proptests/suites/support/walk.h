#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/bucket.h"
#include "weir/limit.h"
#include "weir/time.h"

namespace weir::suites {

/// What a walk may meet.
struct Terrain {
  std::int64_t refill_most = max_quantity;
  Instant earliest{Micros{1'483'228'800'000'000}};  // 2017-01-01
  Instant latest{Micros{4'102'444'800'000'000}};    // 2100-01-01
  bool plan_changes = true;
  bool clock_back = true;
};

/// Draws a limit: from one a day to a million a second, and the edges of what there is.
/// Inside a property only: draws from RapidCheck, which shrinks what was drawn.
[[nodiscard]] Limit any_limit(std::int64_t refill_most = max_quantity);

/// A walk of one tenant through time, plans and costs. Steps come from a lattice, not from an
/// interval: nothing, one, what flips the next answer, and each of them ± 1.
/// Inside a property only.
class Walk {
 public:
  explicit Walk(const Terrain& terrain = {});

  /// The next call of a limiter that stores `stored`.
  [[nodiscard]] model::Input next(const std::optional<model::State>& stored);

  /// The earliest instant at which a store may have forgotten what was written: where `now` is past
  /// it, every second time, the key is gone. Call it with the last output that wrote.
  [[nodiscard]] bool forgets(const model::Output& written, Instant now) const;

 private:
  Terrain terrain_;
  std::vector<Limit> plans_;
  Limit plan_;
  Instant now_;
};

}  // namespace weir::suites
