#pragma once

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <optional>
#include <utility>

#include "weir/decision.h"
#include "weir/limit.h"
#include "weir/time.h"

/// What is right: the exact token bucket, on one page (DESIGN, section 2). Rational tokens in a
/// bucket, where core and scripts keep an integer debt in units, so that the two cannot share a bug.
/// Values and pure functions; any thread.
namespace weir::model {

// Nothing here comes near 2^127 (a clock thrown back by 2^53 µs at 2^51 tokens a µs is 2^104), and a
// number that did would throw, not wrap. Four times as fast as cpp_rational without a bound.
using Integer = boost::multiprecision::checked_int128_t;
using Rational = boost::multiprecision::number<boost::multiprecision::rational_adaptor<Integer::backend_type>>;

/// A bucket that is stored. An absent one (std::nullopt) is full, under every limit.
struct State {
  Rational tokens;        // at most `capacity`; below 0 only after the clock went back or a capacity
                          // was lowered, and never below -capacity
  std::int64_t capacity;  // of the limit last seen
  Rational rate;          // tokens per µs of the limit that wrote it
  Instant as_of;          // when `tokens` was true

  bool operator==(const State&) const = default;
};

struct Input {
  Limit limit;
  Instant now;
  Cost cost;
};

/// The answer, what is stored after it, and what the store owes it.
struct Output {
  Decision decision;
  std::optional<State> after;
  bool writes;          // the store must be written; otherwise it must not be
  Instant alive_until;  // if written: at each instant up to this one the key is alive
  Instant gone_after;   // if written: the key's expiry is no later than this
};

[[nodiscard]] inline std::optional<State> init() {
  return std::nullopt;
}

[[nodiscard]] inline Integer ceil(const Integer& dividend, const Integer& divisor) {  // of what is not negative
  return (dividend + divisor - 1) / divisor;
}
[[nodiscard]] inline std::int64_t floor(const Rational& value) {  // of what is not negative
  return static_cast<std::int64_t>(Integer{numerator(value) / denominator(value)});
}

/// The bucket brought to `now` and to `limit`, before anything is taken.
[[nodiscard]] inline State at(const std::optional<State>& stored, const Limit& limit, Instant now) {
  const std::int64_t capacity = limit.capacity();
  const Rational rate{limit.refill(), limit.period().count()};
  if (!stored) return {capacity, capacity, rate, now};

  const bool same_plan = stored->rate == rate;
  // What a capacity gained is there to take; what it lost is gone.
  Rational tokens = stored->tokens + (capacity - stored->capacity);
  if (same_plan && tokens < -capacity) tokens = -capacity;
  // The plan that wrote the state governs up to now. A clock that went back takes its refill back.
  tokens += stored->rate * (now - stored->as_of).count();
  if (tokens > capacity) tokens = capacity;
  if (tokens < -capacity) tokens = -capacity;
  if (!same_plan) {
    // A change of plan mints nothing: what is missing becomes a whole number of 1/P, rounded up.
    const Rational missing = capacity - tokens;
    const Integer units = denominator(rate);
    tokens = capacity - Rational{ceil(numerator(missing) * units, denominator(missing)), units};
  }
  return {std::move(tokens), capacity, rate, now};
}

[[nodiscard]] inline Output step(const std::optional<State>& stored, const Input& input) {
  State bucket = at(stored, input.limit, input.now);
  const std::int64_t cost = input.cost.tokens();
  const bool never = cost > bucket.capacity;
  const bool allowed = !never && bucket.tokens >= cost;
  if (allowed) bucket.tokens -= cost;

  const auto wait_for = [&](const Rational& tokens) {  // ceil(tokens / rate), without reducing the fraction
    return Micros{static_cast<std::int64_t>(ceil(numerator(tokens) * denominator(bucket.rate),  //
                                                 denominator(tokens) * numerator(bucket.rate)))};
  };
  const Rational missing = bucket.capacity - bucket.tokens;
  Decision decision{.outcome = Outcome::allowed,
                    .remaining = bucket.tokens > 0 ? floor(bucket.tokens) : 0,
                    .retry_after = Micros{0},
                    .reset_after = wait_for(missing)};
  if (never) {
    decision.outcome = Outcome::never;
    decision.retry_after = std::nullopt;
  } else if (!allowed) {
    decision.outcome = Outcome::denied;
    decision.retry_after = wait_for(cost - bucket.tokens);
  }

  const bool moved_back = stored && input.now < stored->as_of;
  const bool new_plan = stored && stored->rate != bucket.rate;
  const bool writes = !never && cost > 0 && (allowed || moved_back || new_plan);
  if (!writes) return {decision, stored, false, input.now, input.now};

  // A clock can step back over an expiry: hence one time-to-full more than until the bucket is full.
  const Instant alive_until = input.now + wait_for(missing + bucket.capacity);
  const Instant gone_after = input.now + Micros{floor(5 * bucket.capacity / bucket.rate)} + Micros{2'000'000};
  return {decision, std::move(bucket), true, alive_until, gone_after};
}

/// What is missing to full, counted in 1/P of a token as stores do: always a whole number of them.
[[nodiscard]] inline std::int64_t units_missing(const State& state) {
  return floor((state.capacity - state.tokens) * denominator(state.rate));
}

}  // namespace weir::model
