#pragma once

#include <map>
#include <optional>

#include "model/history.h"
#include "model/scenario.h"
#include "weir/bucket.h"

namespace weir::suites {

/// What an honest limiter that tells times in ms would have been seen to do: core's answers, and a
/// key that lives as long as it must.
[[nodiscard]] inline model::History honest_history(const model::Scenario& scenario) {
  struct Key {
    Bucket bucket;
    std::int64_t until_ms;
  };
  std::map<int, Key> keys;
  model::History history{scenario, {}};
  Instant now = scenario.start;
  for (const model::TimedCall& call : scenario.calls) {
    now += Micros{call.advance_us};
    const std::int64_t now_ms = now.time_since_epoch().count() / 1'000;
    model::Observation& seen = history.seen.emplace_back();
    if (const auto key = keys.find(call.tenant); key != keys.end() && now_ms > key->second.until_ms) keys.erase(key);

    const auto limit = scenario.plan_of(call).limit();
    const auto cost = model::cost_of(call);
    if (!limit || !cost) {
      seen.kind = model::Observation::Kind::error;
      seen.text = "BADARG";
    } else {
      const auto key = keys.find(call.tenant);
      const Step step =
          decide(*limit, key == keys.end() ? std::nullopt : std::optional{key->second.bucket}, now, *cost);
      const auto ms = [](Micros time) { return (time.count() + 999) / 1'000 * 1'000; };
      seen.allowed = step.decision.allowed();
      seen.told_never = step.decision.outcome == Outcome::never;
      if (step.decision.retry_after) seen.retry_after_us = ms(*step.decision.retry_after);
      seen.remaining = step.decision.remaining;
      seen.reset_after_us = ms(step.decision.reset_after);
      if (step.write) {
        seen.writes = 1;
        const Instant until = now + lifetime(*limit, step.write->debt);
        keys.insert_or_assign(call.tenant, Key{*step.write, until.time_since_epoch().count() / 1'000});
      }
    }
    if (const auto key = keys.find(call.tenant); key != keys.end()) {
      seen.present = true;
      seen.stored = key->second.bucket;
      seen.stored_until_ms = seen.first_expiry_ms = seen.last_expiry_ms = key->second.until_ms;
    }
  }
  return history;
}

}  // namespace weir::suites
