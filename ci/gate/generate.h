#pragma once

#include <cstddef>
#include <vector>

#include "ci/gate/domain.h"
#include "ci/gate/random.h"
#include "model/scenario.h"

namespace weir::gate {

/// What a campaign lets happen beside valid calls under one limit on a clock that runs forward.
struct Features {
  bool clock_back = false;
  bool plan_changes = false;
  bool bad_input = false;
  bool tenants = false;

  bool operator==(const Features&) const = default;
};

/// One random scenario of `length` calls within the domain.
///
/// Times and costs come from a lattice around what the limiter is about to answer (the instant that
/// flips it, one tick before and after, emission interval, time-to-full, expiry, whole jumps), because
/// uniform ones were seen to miss a planted bug for a million calls. The look-ahead is the core's
/// decide(): it only chooses inputs, it judges nothing.
[[nodiscard]] model::Scenario generate(const Domain& domain, const Features& features, std::size_t length,
                                       Random& random);

/// Histories of one caller who takes all there is, asks too early twice, and comes back at the very instant
/// that the limit promises: what a limiter that rounds each time it writes gets wrong at few pairs of times,
/// which random ones seldom hit. The same ones always, at most `most`; none where the domain has no such cost.
[[nodiscard]] std::vector<model::Scenario> early_callers(const Domain& domain, std::size_t most);

}  // namespace weir::gate
