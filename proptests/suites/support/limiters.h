#pragma once

#include <optional>

#include "model/bucket.h"
#include "model/promises.h"
#include "weir/bucket.h"

namespace weir::suites {

/// The model's state as a store keeps it.
[[nodiscard]] inline Bucket in_units(const model::State& state) {
  return {model::units_missing(state), state.as_of, static_cast<std::int64_t>(model::Integer{numerator(state.rate)}),
          static_cast<std::int64_t>(model::Integer{denominator(state.rate)})};
}

[[nodiscard]] inline model::Answer<model::State> by_the_model(const std::optional<model::State>& stored,
                                                              const model::Input& input) {
  const model::Output output = model::step(stored, input);
  return {output.decision, output.after, output.writes};
}

[[nodiscard]] inline model::Answer<Bucket> by_core(const std::optional<Bucket>& stored, const model::Input& input) {
  const Step step = decide(input.limit, stored, input.now, input.cost);
  return {step.decision, step.write ? step.write : stored, step.write.has_value()};
}

}  // namespace weir::suites
