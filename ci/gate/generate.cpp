#include "ci/gate/generate.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "weir/bucket.h"

namespace weir::gate {
namespace {

using model::Plan;
using model::Quantity;
using model::Scenario;
using model::TimedCall;

constexpr std::int64_t day_us = 86'400'000'000;
constexpr Instant year_2017{Micros{17'167 * day_us}};
constexpr Instant year_2100{Micros{47'482 * day_us}};

/// A number in the range: its ends, small ones, round ones, and any.
std::int64_t lattice_number(Range range, Random& random) {
  const auto clamp = [&](std::int64_t number) { return std::clamp(number, range.least, range.most); };
  switch (random.below(8)) {
    case 0: return range.least;
    case 1: return range.most;
    case 2: return clamp(1);
    case 3: return clamp(random.between(1, 3));
    case 4: return clamp(random.between(2, 12));
    case 5: return clamp(random.one_of({10L, 60L, 100L, 1'000L, 3'600L, 10'000L, 1'000'000L}));
    case 6: {  // any order of magnitude
      const std::int64_t top = std::int64_t{1} << random.between(0, 50);
      return clamp(random.between(top / 2 + 1, top));
    }
    default: return random.between(range.least, range.most);
  }
}

std::int64_t lattice_period(Range range, Random& random) {
  if (range.least == range.most) return range.least;
  const std::int64_t round = random.one_of(
      {1L, 1'000L, 100'000L, 1'000'000L, 1'000'000L, 1'000'000L, 60'000'000L, 3'600'000'000L, day_us, 7'000'003L});
  return random.percent(80) ? std::clamp(round, range.least, range.most) : lattice_number(range, random);
}

/// A limit within the domain that fits: built so, not filtered.
Plan valid_plan(const Domain& domain, Random& random) {
  Plan plan;
  plan.refill = lattice_number(domain.refill, random);
  plan.period_us = lattice_period(domain.period_us, random);
  const std::int64_t unit = plan.period_us.whole / std::gcd(plan.refill.whole, plan.period_us.whole);
  const std::int64_t most = std::min(domain.capacity.most, max_quantity / unit);
  if (most < domain.capacity.least) {  // this rate fits no capacity of the domain: a rate that does
    plan.refill = domain.refill.least;
    plan.period_us = domain.period_us.least;
    plan.capacity = domain.capacity.least;
    return plan;
  }
  plan.capacity = lattice_number({domain.capacity.least, most}, random);
  return plan;
}

/// A plan that a tenant on `from` may be moved to: up or down in one thing, or another altogether.
Plan changed_plan(const Domain& domain, const Plan& from, Random& random) {
  Plan to = from;
  switch (random.below(4)) {
    case 0: to.capacity = lattice_number(domain.capacity, random); break;
    case 1: to.refill = lattice_number(domain.refill, random); break;
    case 2:
      to.refill = std::clamp(from.refill.whole * random.between(1, 3), domain.refill.least, domain.refill.most);
      break;
    default: return valid_plan(domain, random);
  }
  return to.limit() ? to : valid_plan(domain, random);
}

/// A number that is none, or not in range. Negative and huge ones are whole, the rest is text.
Quantity bad_quantity(bool zero_is_bad, Random& random) {
  switch (random.below(zero_is_bad ? 8 : 7)) {
    case 0: return Quantity{-1};
    case 1: return Quantity{-random.between(2, 1'000)};
    case 2: return Quantity{std::string{random.one_of({"1.5", "0.5", "2.000001"})}};
    case 3: return Quantity{std::string{"nan"}};
    case 4: return Quantity{std::string{random.one_of({"1e300", "inf", "9007199254740993", "1e17"})}};
    case 5: return Quantity{std::string{random.one_of({"abc", "1,5", "ten"})}};
    case 6: return Quantity{std::string{""}};
    default: return Quantity{0};
  }
}

class Lookahead {
 public:
  Lookahead(const Domain& domain, const Features& features, Random& random)
      : domain_(domain), features_(features), random_(random) {}

  Scenario scenario(std::size_t length) {
    scenario_.start = aligned(
        Instant{Micros{random_.between(year_2017.time_since_epoch().count(), year_2100.time_since_epoch().count())}});
    now_ = scenario_.start;
    scenario_.plans.push_back(valid_plan(domain_, random_));
    if (features_.plan_changes) {
      for (int more = random_.percent(50) ? 1 : 2; more > 0; --more)
        scenario_.plans.push_back(changed_plan(domain_, scenario_.plans.back(), random_));
    }
    tenants_.resize(features_.tenants ? 2 : 1);
    for (std::size_t made = 0; made < length; ++made) scenario_.calls.push_back(next_call(made == 0));
    return std::move(scenario_);
  }

 private:
  struct Tenant {
    std::optional<Bucket> bucket;
    std::optional<Instant> gone_at;  // until when the bucket must live, at the least
    int plan = 0;
  };

  [[nodiscard]] Instant aligned(Instant instant) const { return instant - instant.time_since_epoch() % domain_.tick; }

  TimedCall next_call(bool first) {
    TimedCall call;
    call.tenant = static_cast<int>(random_.below(tenants_.size()));
    Tenant& tenant = tenants_[static_cast<std::size_t>(call.tenant)];
    if (features_.plan_changes && random_.percent(45))
      tenant.plan = static_cast<int>(random_.below(scenario_.plans.size()));
    call.plan = tenant.plan;
    const Limit limit = *scenario_.plans[static_cast<std::size_t>(call.plan)].limit();

    if (!first) call.advance_us = advance(limit, tenant);
    now_ += Micros{call.advance_us};
    if (features_.bad_input && random_.percent(20)) return bad_call(std::move(call));

    call.cost = cost(limit, tenant);
    const Step step = decide(limit, tenant.bucket, now_, *model::cost_of(call));
    if (step.write) {
      tenant.bucket = step.write;
      tenant.gone_at = now_ + lifetime(limit, step.write->debt);
    }
    return call;
  }

  /// The limit's own scale of time, in whole ticks.
  [[nodiscard]] std::int64_t advance(const Limit& limit, const Tenant& tenant) {
    const std::int64_t tick = domain_.tick.count();
    const auto up = [&](Micros wait) { return detail::ceil_div(std::max<std::int64_t>(wait.count(), 0), tick) * tick; };
    const Step next = decide(limit, tenant.bucket, now_, one_token);
    const std::int64_t flip = next.decision.retry_after ? up(*next.decision.retry_after) : 0;
    const std::int64_t emission = up(limit.emission_interval());
    const std::int64_t fill = up(limit.time_to_full());

    std::int64_t delta = 0;
    if (domain_.fixed_window && random_.percent(40)) {
      const std::int64_t period = domain_.period_us.least;
      return up(Micros{period - now_.time_since_epoch().count() % period}) +
             random_.one_of({-tick, 0L, tick, period, 3 * period});
    }
    switch (random_.below(22)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: break;
      case 6: delta = tick; break;
      case 7: delta = 1'000; break;
      case 8:
      case 9:
      case 10: delta = flip; break;
      case 11: delta = flip - tick; break;
      case 12: delta = flip + tick; break;
      case 13: delta = emission + tick * random_.between(-1, 1); break;
      case 14: delta = fill + tick * random_.between(-1, 1); break;
      case 15: delta = up(next.decision.reset_after) + tick * random_.between(-1, 1); break;
      case 16: delta = random_.between(0, fill / tick) * tick; break;
      case 17: delta = random_.between(0, std::max<std::int64_t>(1, emission / tick)) * tick; break;
      case 18:  // around the instant at which the bucket may be gone
        delta = tenant.gone_at ? up(*tenant.gone_at - now_) + random_.one_of({-1'000L, -tick, 0L, tick, 1'000L, 2'000L})
                               : 0;
        break;
      case 19:
      case 20: delta = up(Micros{5 * fill + 2'000'000}) + tick; break;  // past any lifetime
      default: delta = random_.one_of({3 * fill, 1'000'000L, 60'000'000L}); break;
    }
    delta = std::max<std::int64_t>(delta, 0);
    if (features_.clock_back && random_.percent(30))
      delta = -random_.one_of(
          {tick, std::int64_t{1'000}, emission, fill, delta, fill / 2, std::int64_t{3'600'000'000}, 3 * fill});
    delta = detail::floor_div(std::abs(delta), tick) * (delta < 0 ? -tick : tick);
    return within_dates(delta);
  }

  /// Long jumps end where the dates that are claimed end.
  [[nodiscard]] std::int64_t within_dates(std::int64_t delta) const {
    constexpr std::int64_t margin = 366 * day_us;
    if (std::abs(delta) > max_quantity) return 0;
    const Instant then = now_ + Micros{delta};
    if (then > year_2100 + Micros{margin} || then < year_2017 - Micros{margin}) return 0;
    return delta;
  }

  [[nodiscard]] Quantity cost(const Limit& limit, const Tenant& tenant) {
    const std::int64_t left = decide(limit, tenant.bucket, now_, peek).decision.remaining;
    std::int64_t tokens = 1;
    switch (random_.below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: break;
      case 5:
      case 6: tokens = left; break;
      case 7: tokens = left + 1; break;
      case 8:
      case 9: tokens = limit.capacity(); break;
      case 10:
      case 11: tokens = limit.capacity() + random_.one_of({1L, 1L, 2L, 1'000'000L}); break;
      case 12: tokens = 0; break;
      case 13: tokens = random_.between(1, std::min<std::int64_t>(limit.capacity(), 3)); break;
      case 14: tokens = std::max<std::int64_t>(1, limit.capacity() / 2); break;
      default: tokens = random_.between(1, limit.capacity()); break;
    }
    return std::clamp(tokens, domain_.cost.least, std::min(domain_.cost.most, max_quantity));
  }

  TimedCall bad_call(TimedCall call) {
    // A bad limit is another plan of the scenario: a caller with a broken configuration.
    if (random_.percent(60)) {
      call.cost = bad_quantity(false, random_);
      return call;
    }
    Plan plan = scenario_.plan_of(call);
    const std::uint64_t fields = domain_.one_period() ? 2 : 3;
    switch (random_.below(fields)) {
      case 0: plan.capacity = bad_quantity(true, random_); break;
      case 1: plan.refill = bad_quantity(true, random_); break;
      default: plan.period_us = bad_quantity(true, random_); break;
    }
    scenario_.plans.push_back(plan);
    call.plan = static_cast<int>(scenario_.plans.size()) - 1;
    return call;
  }

  const Domain& domain_;
  const Features& features_;
  Random& random_;
  Scenario scenario_;
  Instant now_;
  std::vector<Tenant> tenants_;
};

}  // namespace

Domain domain_of(const harness::Contract& contract) {
  using Unit = harness::Contract::Unit;
  const auto micros = [](Unit unit) {
    switch (unit) {
      case Unit::seconds: return Micros{1'000'000};
      case Unit::milliseconds: return Micros{1'000};
      case Unit::microseconds: break;
    }
    return Micros{1};
  };
  return Domain{.capacity = contract.capacity,
                .refill = contract.refill,
                .period_us = contract.period_us,
                .cost = contract.cost,
                .tick = micros(contract.clock),
                .resolution = micros(contract.resolution),
                .fixed_window = contract.promises == harness::Contract::Promises::fixed_window,
                .own_rules = contract.has_state};
}

Scenario generate(const Domain& domain, const Features& features, std::size_t length, Random& random) {
  return Lookahead{domain, features, random}.scenario(length);
}

std::vector<Scenario> early_callers(const Domain& domain, std::size_t most) {
  const std::int64_t capacity = std::max<std::int64_t>(1, domain.capacity.least);
  if (domain.cost.least > capacity || domain.cost.most < capacity) return {};
  const std::int64_t second = 1'000'000;
  const model::Plan plan{capacity, std::max<std::int64_t>(1, domain.refill.least),
                         std::clamp(second, domain.period_us.least, domain.period_us.most)};
  const auto limit = plan.limit();
  if (!limit) return {};
  const std::int64_t tick = domain.tick.count();
  const std::int64_t full = (limit->time_to_full().count() + tick - 1) / tick * tick;
  // A thousandth of the way, as milliseconds are of a second; tens and elevens of it meet at few pairs.
  const std::int64_t step = std::max(tick, full / 1'000 / tick * tick);

  std::vector<Scenario> histories;
  for (std::int64_t first = 10 * step; first < full; first += 10 * step) {
    for (std::int64_t second_at = first + 11 * step; second_at < full; second_at += 11 * step) {
      if (histories.size() == most) return histories;
      histories.push_back({usual_start, {plan}, {}});
      for (const std::int64_t advance : {std::int64_t{0}, first, second_at - first, full - second_at})
        histories.back().calls.push_back({.advance_us = advance, .tenant = 0, .plan = 0, .cost = capacity});
    }
  }
  return histories;
}

}  // namespace weir::gate
