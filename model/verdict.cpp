#include "model/verdict.h"

#include <algorithm>
#include <map>

#include "model/bound.h"
#include "model/bucket.h"
#include "model/window.h"

namespace weir::model {
namespace {

constexpr std::array<std::string_view, promise_count> promise_names{"bound",    "exact",    "retry",      "remaining",
                                                                    "lifetime", "no_trace", "bad_input",  "clock",
                                                                    "plan",     "tenants",  "concurrency"};

std::string number(std::int64_t value) {
  return std::to_string(value);
}

std::string tokens(std::int64_t count) {
  return number(count) + (count == 1 ? " token" : " tokens");
}

std::int64_t expiry_us(std::int64_t expiry_ms) {
  return expiry_ms * 1'000;
}

std::string_view bad_number_kind(const Quantity& quantity) {
  if (quantity.is_whole()) {
    if (quantity.whole < 0) return "negative";
    if (quantity.whole == 0) return "zero";
    return "huge";
  }
  const std::string& text = *quantity.odd;
  if (text.empty()) return "empty";
  if (text == "nan") return "nan";
  if (text.find_first_not_of("0123456789.e+-") != std::string::npos && text != "inf") return "text";
  if (text.find('.') != std::string::npos) return "fractional";
  return "huge";
}

/// Which field was bad and what came of it is the essence; how it was bad may change while it shrinks.
Failure bad_input_failure(const std::string& kind, std::string_view what, std::size_t call, std::string why) {
  const std::string field = kind.substr(kind.find('_') + 1);
  return {Promise::bad_input, kind + '.' + std::string{what}, call, std::move(why),
          "bad_input." + field + '.' + std::string{what}};
}

/// What the judge keeps of a tenant between calls.
struct Tenant {
  std::optional<State> state;
  std::optional<window::State> window;
  std::vector<Call> taken;  // for the bound
  bool was_seen = false;
  bool key_present = false;
  bool key_endless = false;
  std::int64_t key_expiry_ms = 0;
  int plan = 0;
  std::optional<Instant> last_call;

  // The last denial that nothing has overtaken.
  struct Denial {
    Instant at;
    std::int64_t cost;
    std::int64_t needed_us;  // the model's wait
    std::optional<std::int64_t> told_us;
  };
  std::optional<Denial> denial;
};

class Judge {
 public:
  Judge(const History& history, const Promised& promised, bool explain)
      : history_(history), promised_(promised), explain_(explain) {}

  Verdict run() {
    now_ = history_.scenario.start;
    verdict_.expected.reserve(history_.seen.size());
    for (call_ = 0; call_ < history_.seen.size() && !parted_; ++call_) one_call();
    add_accepted_bad_input();
    if (!promised_.fixed_window) bound();
    return std::move(verdict_);
  }

 private:
  const TimedCall& call() const { return history_.scenario.calls[call_]; }
  const Observation& seen() const { return history_.seen[call_]; }

  void one_call() {
    now_ += Micros{call().advance_us};
    const Plan& plan = history_.scenario.plan_of(call());
    Tenant& tenant = tenant_of(call().tenant);
    note_input(tenant);
    forget_expired(tenant);
    verdict_.coverage.calls += 1;

    if (seen().kind == Observation::Kind::no_reply) return part("no_reply", "the call did not end: " + seen().text);
    const auto limit = plan.limit();
    const auto cost = cost_of(call());
    if (!limit || !cost) {
      bad_call(plan);
    } else {
      valid_call(tenant, *limit, *cost);
    }
    if (seen().strays > 0)
      fail(Promise::tenants, "undeclared_key", "the call wrote to a key that it did not declare in KEYS");
    tenant.key_present = seen().present;
    tenant.key_endless = seen().endless;
    tenant.key_expiry_ms = seen().last_expiry_ms.value_or(0);
    tenant.was_seen = true;
    tenant.last_call = now_;
    tenant.plan = call().plan;
  }

  Tenant& tenant_of(int number) {
    const auto index = static_cast<std::size_t>(number);
    if (tenants_.size() <= index) tenants_.resize(index + 1);
    return tenants_[index];
  }

  void note_input(const Tenant& tenant) {
    if (call().advance_us < 0) moved_back_ = true;
    if (tenant.was_seen && tenant.plan != call().plan) plan_changed_ = true;
    if (call().tenant > 0) ++verdict_.coverage.two_tenants;
    if (tenant.last_call && now_ < *tenant.last_call) verdict_.coverage.clock_back += 1;
  }

  /// The model is told whether the key was there; that it was allowed to be gone is another promise.
  void forget_expired(Tenant& tenant) {
    if (!tenant.was_seen || (!tenant.state && !tenant.window)) return;
    const bool alive =
        tenant.key_present && (tenant.key_endless || now_.time_since_epoch().count() / 1'000 <= tenant.key_expiry_ms);
    if (alive) return;
    if (tenant.key_present) verdict_.coverage.expired += 1;
    tenant.state.reset();
    tenant.window.reset();
    tenant.denial.reset();
  }

  void valid_call(Tenant& tenant, const Limit& limit, Cost cost) {
    if (tenant.state && tenant.state->rate != Rational{limit.refill(), limit.period().count()})
      verdict_.coverage.plan_changed += 1;
    if (explain_ && !promised_.fixed_window) explained_tokens_ = at(tenant.state, limit, now_).tokens.str();
    const bool stepped_back = tenant.state && now_ < tenant.state->as_of;
    Output right = promised_.fixed_window ? window_step(tenant, limit, cost) : step(tenant.state, {limit, now_, cost});
    verdict_.expected.push_back({.bad = false, .decision = right.decision, .tokens = explained_tokens_});
    count(tenant, right.decision, cost);

    if (seen().kind == Observation::Kind::error)
      return part("error_reply", "a valid call was answered by an error: " + seen().text);
    if (seen().kind == Observation::Kind::malformed)
      return part("malformed_reply", "the reply could not be read: " + seen().text);

    if (!promised_.fixed_window) trace(right, cost, stepped_back);
    tenant.taken.push_back({now_, cost.tokens(), seen().allowed});
    if (seen().allowed != right.decision.allowed()) return wrong_answer(tenant, limit, cost, right.decision);
    told(cost, right.decision);
    if (right.writes) {
      lifetime(right);
      tenant.state = std::move(right.after);
    }
    stored(tenant);
    if (seen().allowed && cost.tokens() > 0) {
      tenant.denial.reset();
    } else if (right.decision.outcome == Outcome::denied) {
      tenant.denial = Tenant::Denial{now_, cost.tokens(), right.decision.retry_after->count(), seen().retry_after_us};
    }
  }

  /// The fixed window in the words of the bucket: what it counted must live to the end of its window.
  Output window_step(Tenant& tenant, const Limit& limit, Cost cost) const {
    const Plan& plan = history_.scenario.plan_of(call());
    const Micros period{plan.period_us.whole};
    const window::Output right = window::step({limit.capacity(), period}, tenant.window, now_, cost);
    tenant.window = right.after;
    const bool charged = right.decision.allowed() && !cost.is_peek();
    const Instant end = now_ - now_.time_since_epoch() % period + period - Micros{1};
    return {right.decision, std::nullopt, charged, end, now_ + 5 * period + Micros{2'000'000}};
  }

  void count(const Tenant& tenant, const Decision& right, Cost cost) {
    Coverage& coverage = verdict_.coverage;
    const bool granted = right.outcome == Outcome::allowed && !cost.is_peek();
    if (granted) ++coverage.allowed;
    if (right.outcome == Outcome::denied) ++coverage.denied;
    if (right.outcome == Outcome::never) ++coverage.never;
    if (cost.is_peek()) ++coverage.peeks;
    if (granted && right.remaining == 0) ++coverage.emptied;
    if (!tenant.denial || tenant.denial->cost != cost.tokens()) return;
    const std::int64_t tick = promised_.tick.count();
    const std::int64_t waited = (now_ - tenant.denial->at).count();
    const std::int64_t needed = (tenant.denial->needed_us + tick - 1) / tick * tick;
    if (waited == needed) ++coverage.at_boundary;
    if (waited == needed - tick) ++coverage.before_boundary;
  }

  void wrong_answer(const Tenant& tenant, const Limit& limit, Cost cost, const Decision& right) {
    if (seen().allowed) {
      if (right.outcome == Outcome::never)
        return part("cost_above_capacity_allowed",
                    "a cost of " + number(cost.tokens()) + " was allowed by a bucket of " + tokens(limit.capacity()));
      return part("over_admission", "a cost of " + number(cost.tokens()) + " was allowed; the model has " +
                                        tokens(right.remaining) + " and denies it, for another " +
                                        show_time(right.retry_after->count()));
    }
    const auto& denial = tenant.denial;
    if (denial && denial->told_us && cost.tokens() <= denial->cost && !seen().told_never &&
        (now_ - denial->at).count() >= *denial->told_us) {
      return part_as(Promise::retry, "too_short",
                     "a denied call was told to wait " + show_time(*denial->told_us) + "; after " +
                         show_time((now_ - denial->at).count()) + " it was denied again, and nobody else had taken");
    }
    part("wrongly_denied", "a cost of " + number(cost.tokens()) + " was denied; the model allows it, with " +
                               tokens(right.remaining) + " left after it");
  }

  void told(Cost cost, const Decision& right) {
    if (seen().remaining && *seen().remaining != right.remaining)
      fail(Promise::remaining, "wrong_remaining",
           "it told " + number(*seen().remaining) + " remaining; the model has " + tokens(right.remaining));
    const std::int64_t resolution = promised_.resolution.count();
    const auto rounded = [&](std::int64_t us) { return (us + resolution - 1) / resolution * resolution; };
    if (seen().reset_after_us && *seen().reset_after_us != rounded(right.reset_after.count()))
      fail(Promise::remaining, "wrong_reset",
           "it told " + show_time(*seen().reset_after_us) + " until full; the model says " +
               show_time(right.reset_after.count()));
    switch (right.outcome) {
      case Outcome::allowed:
        if (seen().retry_after_us.value_or(0) != 0)
          fail(Promise::retry, "told_when_allowed",
               "an allowed call was told to wait " + show_time(*seen().retry_after_us));
        return;
      case Outcome::never:
        if (seen().retry_after_us)
          fail(Promise::retry, "told_to_retry_never",
               "a cost of " + number(cost.tokens()) + " above the capacity was told to retry in " +
                   show_time(*seen().retry_after_us) + "; it can never pass");
        return;
      case Outcome::denied: break;
    }
    if (seen().told_never)
      return fail(
          Promise::retry, "told_never",
          "a denied call was told that it can never pass; the model says in " + show_time(right.retry_after->count()));
    if (!seen().retry_after_us) return;
    const std::int64_t wait = *seen().retry_after_us;
    const std::int64_t needed = right.retry_after->count();
    if (wait < needed)
      fail(Promise::retry, "too_short",
           "a denied call was told to wait " + show_time(wait) + "; the model still denies it until " +
               show_time(needed) + " have passed");
    if (wait > rounded(needed))
      fail(Promise::retry, "too_long",
           "a denied call was told to wait " + show_time(wait) + "; the model allows it after " + show_time(needed));
  }

  void trace(const Output& right, Cost cost, bool stepped_back) {
    if (seen().writes > 0 && !right.writes) {
      const char* kind = right.decision.outcome == Outcome::never ? "wrote_on_never"
                         : cost.is_peek()                         ? "wrote_on_peek"
                                                                  : "wrote_on_denial";
      fail(Promise::no_trace, kind,
           std::string{"a call that takes nothing wrote "} + number(seen().writes) +
               (seen().writes == 1 ? " time" : " times") + " to the store");
    }
    if (promised_.own_rules && seen().writes == 0 && right.writes)
      fail(stepped_back ? Promise::clock : Promise::exact, "did_not_write",
           "the call had to be written down and was not");
  }

  void lifetime(const Output& right) {
    if (seen().writes == 0) return;
    if (!seen().present)
      return fail(Promise::lifetime, "nothing_kept",
                  "after the call there is no key; it must live until " + relative(right.alive_until));
    if (seen().endless) return fail(Promise::lifetime, "no_expiry", "the call left a key without an expiry");
    const std::int64_t alive_until = right.alive_until.time_since_epoch().count();
    if (expiry_us(*seen().first_expiry_ms) + 999 < alive_until)
      fail(Promise::lifetime, "too_short",
           "the key expires " + relative(Instant{Micros{expiry_us(*seen().first_expiry_ms)}}) +
               " the call; it must live until " + relative(right.alive_until) + " it");
    if (expiry_us(*seen().last_expiry_ms) > right.gone_after.time_since_epoch().count())
      fail(Promise::lifetime, "too_long",
           "the key expires " + relative(Instant{Micros{expiry_us(*seen().last_expiry_ms)}}) +
               " the call; it must be gone " + relative(right.gone_after) + " it");
  }

  void stored(const Tenant& tenant) {
    if (!promised_.own_rules || !seen().present) return;
    if (seen().unreadable || !seen().stored) return part("unreadable_state", "the stored bytes are no bucket");
    if (!tenant.state) return;
    const State& state = *tenant.state;
    const Bucket right{units_missing(state), state.as_of, static_cast<std::int64_t>(numerator(state.rate)),
                       static_cast<std::int64_t>(denominator(state.rate))};
    if (*seen().stored != right)
      return part("wrong_state", "stored is debt " + number(seen().stored->debt) + " as of " +
                                     relative(seen().stored->as_of) + ", refill " + number(seen().stored->refill) +
                                     " per " + number(seen().stored->period_us) + " us; right is debt " +
                                     number(right.debt) + " as of " + relative(right.as_of) + ", refill " +
                                     number(right.refill) + " per " + number(right.period_us) + " us");
    if (seen().stored_until_ms != seen().last_expiry_ms)
      fail(Promise::lifetime, "until_differs", "the expiry that is written in the state is not the key's");
  }

  /// Refused with no effect is right. What is wrong: an error that wrote, a key for ever, tokens out of
  /// nothing, a bucket spoilt for later calls, or "allowed" where nothing sensible can be granted.
  void bad_call(const Plan& plan) {
    verdict_.expected.push_back({.bad = true, .tokens = {}});
    verdict_.coverage.bad_input += 1;
    const std::string kind = bad_input_kind(plan, call());
    const bool fraction = kind.starts_with("fractional");
    if (seen().kind == Observation::Kind::answered && seen().allowed) {
      // A limiter that serves fractions at their face value harms nobody; ours promises to refuse them.
      if (!fraction || promised_.own_rules) accepted_.emplace_back(call_, kind);
      took_bad_input_ = true;
    }
    bad_kind_ = kind;
    if (seen().present && seen().endless)
      fail_bad(kind, "no_expiry", "the call left a key that never expires");
    else if (seen().kind == Observation::Kind::error && seen().writes > 0)
      fail_bad(kind, "error_wrote", "the call was answered by an error, and had written");
    else if (promised_.own_rules && seen().writes > 0)
      fail_bad(kind, "wrote", "a call with bad input was written down");
    if (promised_.own_rules && seen().kind != Observation::Kind::error)
      fail_bad(kind, "no_error", "a call with bad input must be answered by an error that names it");
  }

  /// Judged by itself, on what was admitted: it does not depend on the model's opinion of any call.
  void bound() {
    if (history_.scenario.plans.size() != 1 || !bad_kind_.empty()) return;
    const auto limit = history_.scenario.plans.front().limit();
    if (!limit) return;
    for (const Tenant& tenant : tenants_) {
      const auto window = worst_window(*limit, tenant.taken);
      if (!window || !window->broken()) continue;
      const Micros length = tenant.taken[window->last].now - tenant.taken[window->first].now;
      verdict_.failures.push_back({Promise::bound, "over_admission", call_ - 1,
                                   tokens(window->admitted) + " admitted within " +
                                       show_time(std::abs(length.count())) + "; the limit entitles to " +
                                       window->entitled.str(),
                                   "bound.over_admission"});
      return;
    }
  }

  /// Only where nothing worse came of it.
  void add_accepted_bad_input() {
    if (!verdict_.failures.empty()) return;
    for (const auto& [at_call, kind] : accepted_) {
      verdict_.failures.push_back(bad_input_failure(
          kind, "accepted", at_call, "a call with " + spaced(kind) + " was allowed; it must be refused"));
    }
  }

  static std::string spaced(std::string words) {
    std::replace(words.begin(), words.end(), '_', ' ');
    return words;
  }

  void fail_bad(const std::string& bad_kind, std::string_view what, std::string why) {
    verdict_.failures.push_back(bad_input_failure(bad_kind, what, call_, std::move(why)));
  }

  /// By what the history holds so far: the smallest one that fails shows what the failure needs.
  Promise attributed(Promise plain) const {
    if (moved_back_) return Promise::clock;
    if (plan_changed_) return Promise::plan;
    if (plain == Promise::exact && tenants_.size() > 1) return Promise::tenants;
    return plain;
  }

  void fail(Promise plain, std::string kind, std::string why) {
    const bool of_answers = plain == Promise::exact || plain == Promise::retry || plain == Promise::remaining;
    if (of_answers && !bad_kind_.empty()) return;  // seen without bad input, or a matter of what was charged for it
    const Promise promise = of_answers ? attributed(plain) : plain;
    std::string essence = std::string{name(plain)} + '.' + kind;
    if (promise != plain && plain != Promise::exact) kind = std::string{name(plain)} + "_" + kind;
    verdict_.failures.push_back({promise, std::move(kind), call_, std::move(why), std::move(essence)});
  }

  /// The limiter and the model hold different buckets from here on: nothing later means anything.
  void part(std::string kind, std::string why) {
    parted_ = true;
    if (!bad_kind_.empty()) {
      if (kind == "over_admission") return fail_bad(bad_kind_, "minted", std::move(why));
      // What was charged for bad input that it took is its own affair.
      if (kind == "wrongly_denied" && took_bad_input_) return;
      if (kind == "wrongly_denied" || kind == "error_reply") return fail_bad(bad_kind_, "spoilt", std::move(why));
    }
    const bool of_window = promised_.fixed_window && kind == "over_admission";
    fail(of_window ? Promise::bound : Promise::exact, std::move(kind), std::move(why));
  }
  void part_as(Promise promise, std::string kind, std::string why) {
    parted_ = true;
    fail(promise, std::move(kind), std::move(why));
  }

  /// "1.5 s after", as seen from the call.
  std::string relative(Instant instant) const {
    const std::int64_t distance = (instant - now_).count();
    return show_time(std::abs(distance)) + (distance < 0 ? " before" : " after");
  }

  const History& history_;
  const Promised& promised_;
  bool explain_;
  Verdict verdict_;
  std::vector<Tenant> tenants_;
  Instant now_;
  std::size_t call_ = 0;
  bool parted_ = false;
  bool moved_back_ = false;
  bool plan_changed_ = false;
  std::string bad_kind_;  // of the last bad call so far
  bool took_bad_input_ = false;
  std::vector<std::pair<std::size_t, std::string>> accepted_;
  std::string explained_tokens_;
};

}  // namespace

std::string_view name(Promise promise) {
  return promise_names[static_cast<std::size_t>(promise)];
}

std::optional<Promise> promise_named(std::string_view name) {
  const auto found = std::find(promise_names.begin(), promise_names.end(), name);
  if (found == promise_names.end()) return std::nullopt;
  return static_cast<Promise>(found - promise_names.begin());
}

std::string Failure::name() const {
  return std::string{model::name(promise)} + '.' + kind;
}

Coverage& Coverage::operator+=(const Coverage& other) {
  calls += other.calls;
  allowed += other.allowed;
  denied += other.denied;
  never += other.never;
  peeks += other.peeks;
  bad_input += other.bad_input;
  clock_back += other.clock_back;
  plan_changed += other.plan_changed;
  expired += other.expired;
  emptied += other.emptied;
  at_boundary += other.at_boundary;
  before_boundary += other.before_boundary;
  two_tenants += other.two_tenants;
  return *this;
}

Verdict judge(const History& history, const Promised& promised, bool explain) {
  return Judge{history, promised, explain}.run();
}

std::string bad_input_kind(const Plan& plan, const TimedCall& call) {
  const auto kind = [](const Quantity& quantity, const char* name) {
    return std::string{bad_number_kind(quantity)} + '_' + name;
  };
  const auto bad = [](const Quantity& quantity) {
    return !quantity.is_whole() || quantity.whole < 1 || quantity.whole > max_quantity;
  };
  if (!cost_of(call)) return kind(call.cost, "cost");
  if (bad(plan.capacity)) return kind(plan.capacity, "capacity");
  if (bad(plan.refill)) return kind(plan.refill, "refill");
  if (bad(plan.period_us)) return kind(plan.period_us, "period");
  return plan.limit() ? "" : "unfit_limit";
}

std::string show_time(std::int64_t us) {
  if (us < 0) return "-" + show_time(-us);
  const auto with = [&](std::int64_t unit, const char* suffix) {
    std::string text = number(us / unit);
    if (us % unit != 0) {
      std::string fraction = number(unit + us % unit).substr(1);
      fraction.erase(fraction.find_last_not_of('0') + 1);
      text += '.' + fraction;
    }
    return text + ' ' + suffix;
  };
  if (us >= 1'000'000) return with(1'000'000, "s");
  if (us >= 1'000) return with(1'000, "ms");
  return with(1, "us");
}

}  // namespace weir::model
