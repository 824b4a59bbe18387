#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/history.h"
#include "weir/decision.h"
#include "weir/time.h"

namespace weir::model {

/// A line of the card: what a limiter can promise (DESIGN, section 2).
enum class Promise : std::uint8_t {
  bound,        // never more than capacity plus refill in any window
  exact,        // allows and denies what the model does
  retry,        // waiting the time it tells is enough, and not longer than needed
  remaining,    // tokens left and time to full are the model's
  lifetime,     // every key has an expiry, not too short and not too long
  no_trace,     // denials, peeks, impossible costs and errors write nothing
  bad_input,    // refused, without a trace and without effect
  clock,        // a clock that steps back earns nothing
  plan,         // a changed limit is exact from the next call
  tenants,      // one tenant's calls change nothing for another; only declared keys are touched
  concurrency,  // callers that overlap get no more than callers one by one
};
inline constexpr std::size_t promise_count = 11;
[[nodiscard]] std::string_view name(Promise promise);
[[nodiscard]] std::optional<Promise> promise_named(std::string_view name);

/// What a limiter promises, as far as a verdict depends on it.
struct Promised {
  bool fixed_window = false;  // else the token bucket
  bool own_rules = false;     // DESIGN 2's writes to the letter, and its stored state is readable
  Micros tick{1};             // its clock moves in these
  Micros resolution{1};       // it tells times in these
};

/// One way in which a history parts from what is right.
struct Failure {
  Promise promise;
  std::string kind;      // "over_admission"; for bad input "negative_cost.minted"
  std::size_t call = 0;  // where, from 0
  std::string why;       // one sentence, in numbers
  std::string essence;   // what stays the same while a counterexample shrinks: "exact.over_admission",
                         // whichever line of the card its smallest form comes to stand in

  /// "clock.over_admission"
  [[nodiscard]] std::string name() const;
};

/// What was right at a call, for people and for the next call.
struct Expected {
  bool bad = false;  // bad input: the rest means nothing
  Decision decision{Outcome::denied, 0, std::nullopt, Micros{0}};
  std::string tokens;  // in the bucket before the call, where a report asked for it
};

/// How often the interesting things happened; a run without them shows nothing.
struct Coverage {
  std::uint64_t calls = 0;
  std::uint64_t allowed = 0;
  std::uint64_t denied = 0;
  std::uint64_t never = 0;
  std::uint64_t peeks = 0;
  std::uint64_t bad_input = 0;
  std::uint64_t clock_back = 0;
  std::uint64_t plan_changed = 0;
  std::uint64_t expired = 0;          // a call found its bucket gone that had been there
  std::uint64_t emptied = 0;          // a call took the last whole token
  std::uint64_t at_boundary = 0;      // a call came at the very instant (in ticks) that a denial had named
  std::uint64_t before_boundary = 0;  // or one tick before it
  std::uint64_t two_tenants = 0;

  Coverage& operator+=(const Coverage& other);
};

struct Verdict {
  std::vector<Failure> failures;
  std::vector<Expected> expected;  // a call each, up to where the limiter and the model part for good
  Coverage coverage;
};

/// Holds what was seen against the exact model, call by call. Pure; any thread.
/// `explain` fills in what only a report needs.
[[nodiscard]] Verdict judge(const History& history, const Promised& promised, bool explain = false);

/// What is wrong with this call's input, as a word: "negative_cost", "zero_refill"; empty if nothing is.
[[nodiscard]] std::string bad_input_kind(const Plan& plan, const TimedCall& call);

/// 1500000 -> "1.5 s"; 333334 -> "333.334 ms"; exact.
[[nodiscard]] std::string show_time(std::int64_t us);

}  // namespace weir::model
