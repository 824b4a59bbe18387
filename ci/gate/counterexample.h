#pragma once

#include <functional>

#include "ci/gate/check.h"
#include "ci/gate/runner.h"

namespace weir::gate {

/// Makes a failing scenario the smallest there is, on the real server: shrinks it with the essence of
/// its failure pinned, then searches everything below it in a small scope, then runs what is left
/// twice. Once `out_of_time()` it is left as small as it got.
[[nodiscard]] Counterexample smallest_counterexample(const model::Failure& failure, model::Scenario scenario,
                                                     Runner& runner, const Domain& domain,
                                                     const model::Promised& promised,
                                                     const std::function<bool()>& out_of_time);

/// Runs a failing scenario twice more and lays it out as it is.
[[nodiscard]] Counterexample confirmed(const model::Failure& failure, const model::Scenario& scenario, Runner& runner,
                                       const model::Promised& promised);

/// Runs a failing interleaving twice more and lays it out.
[[nodiscard]] Counterexample interleaving_counterexample(harness::Server& server, harness::LuaHost& host,
                                                         const Interleaving& failing);

}  // namespace weir::gate
