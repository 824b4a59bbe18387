#pragma once

#include <functional>
#include <optional>

#include "model/bucket.h"
#include "weir/decision.h"
#include "weir/limit.h"
#include "weir/time.h"

namespace weir::model {

/// What a limiter answers, and what is stored afterwards.
template <class State>
struct Answer {
  Decision decision;
  std::optional<State> after;
  bool writes;
};

/// A limiter as the promises see it: the model itself, core, or a script in a real Redis, whose
/// state is then whatever it keeps there.
template <class State>
using Limiter = std::function<Answer<State>(const std::optional<State>& stored, const Input& input)>;

/// The promises of DESIGN 2 that one look at a limiter can refute. (The bound is a promise about
/// whole histories, model/bound.h; `exact` is a comparison with `step`.)
/// `resolution` is the unit in which the limiter tells times.
template <class State>
class Promises {
 public:
  using Stored = std::optional<State>;

  explicit Promises(Limiter<State> limiter, Micros resolution = Micros{1})
      : decide_(std::move(limiter)), resolution_(resolution) {}

  /// True times: waiting as long as told is enough, one unit of the resolution less is not.
  [[nodiscard]] bool a_wait_that_is_told_is_enough_and_not_too_long(const Stored& stored, const Input& input) const {
    const Answer<State> first = decide_(stored, input);
    if (first.decision.outcome == Outcome::allowed) return first.decision.retry_after == Micros{0};
    if (first.decision.outcome == Outcome::never) {
      return input.cost.tokens() > input.limit.capacity() && !first.decision.retry_after;
    }
    if (!first.decision.retry_after || *first.decision.retry_after < resolution_) return false;
    const Instant then = input.now + *first.decision.retry_after;
    if (then > max_instant) return true;
    const auto allowed_at = [&](Instant now) {
      return decide_(first.after, {input.limit, now, input.cost}).decision.allowed();
    };
    return allowed_at(then) && !allowed_at(then - resolution_);
  }

  /// True times: the bucket is full when it was told to be, and one unit of the resolution before it is not.
  [[nodiscard]] bool a_bucket_is_full_exactly_after_its_reset(const Stored& stored, const Input& input) const {
    const Answer<State> first = decide_(stored, input);
    const Instant then = input.now + first.decision.reset_after;
    if (then > max_instant) return true;
    const auto at = [&](Instant now) { return decide_(first.after, {input.limit, now, peek}).decision; };
    const Decision full = at(then);
    const bool in_time = full.reset_after == Micros{0} && full.remaining == input.limit.capacity();
    const bool not_before = then == input.now || at(then - resolution_).reset_after > Micros{0};
    return in_time && not_before;
  }

  /// Conservation: two calls at one instant come to what one call for both comes to.
  [[nodiscard]] bool a_batch_is_its_sequence(const Stored& stored, const Input& input, Cost more) const {
    const Answer<State> first = decide_(stored, input);
    const Answer<State> second = decide_(first.after, {input.limit, input.now, more});
    const auto both = Cost::make(input.cost.tokens() + more.tokens());
    if (!both) return true;
    const Answer<State> at_once = decide_(stored, {input.limit, input.now, *both});
    if (!at_once.decision.allowed()) return !(first.decision.allowed() && second.decision.allowed());
    return first.decision.allowed() && second.decision == at_once.decision && second.after == at_once.after;
  }

  /// No trace: a peek, a `never`, and a denial at a clock that did not go back under a plan that did not change.
  [[nodiscard]] bool only_a_grant_leaves_a_trace(const Stored& stored, const Input& input, bool clock_went_back,
                                                 bool plan_changed) const {
    const Answer<State> answer = decide_(stored, input);
    const bool may_write =
        answer.decision.allowed() || (answer.decision.outcome == Outcome::denied && (clock_went_back || plan_changed));
    return (may_write && input.cost.tokens() > 0) || (!answer.writes && answer.after == stored);
  }

  /// Plans: what the plan that wrote the bucket would allow, no greater plan refuses.
  [[nodiscard]] bool a_raise_refuses_nobody(const Stored& stored, const Input& input, const Limit& raised) const {
    return !decide_(stored, input).decision.allowed() ||
           decide_(stored, {raised, input.now, input.cost}).decision.allowed();
  }

  /// Expiry: once a key may be gone, and as long as the clock is not more than one time-to-full back from
  /// there, what it held makes no difference.
  [[nodiscard]] bool a_bucket_that_may_be_gone_is_a_full_one(const Stored& stored, const Input& input) const {
    return decide_(stored, input).decision == decide_(std::nullopt, input).decision;
  }

 private:
  Limiter<State> decide_;
  Micros resolution_;
};

}  // namespace weir::model
