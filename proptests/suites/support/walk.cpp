#include "proptests/suites/support/walk.h"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace weir::suites {
namespace {

constexpr std::int64_t second = 1'000'000;
constexpr std::int64_t day = 86'400 * second;

template <std::size_t Count>
std::int64_t one_of(const std::array<std::int64_t, Count>& choices) {
  return choices[*rc::gen::inRange<std::size_t>(0, Count)];
}

bool one_in(int chances) {
  return *rc::gen::inRange(0, chances) == chances - 1;
}

/// The limit nearest below these three that fits.
Limit fitted(std::int64_t capacity, std::int64_t refill, std::int64_t period_us) {
  const std::int64_t most = max_quantity / (period_us / std::gcd(refill, period_us));
  return Limit::make(std::clamp<std::int64_t>(capacity, 1, most), refill, Micros{period_us}).value();
}

/// Another plan for the same tenant: a capacity alone, a rate alone, or all anew.
Limit another_plan(const Limit& plan, std::int64_t refill_most) {
  const std::int64_t period_us = plan.period().count();
  switch (*rc::gen::inRange(0, 5)) {
    case 0: return fitted(plan.capacity() + 1, plan.refill(), period_us);
    case 1: return fitted(plan.capacity() / 2, plan.refill(), period_us);
    case 2: return fitted(plan.capacity(), std::min(2 * plan.refill() + 1, refill_most), period_us);
    case 3: return fitted(plan.capacity(), plan.refill(), std::max<std::int64_t>(period_us / 3, 1));
    default: return any_limit(refill_most);
  }
}

}  // namespace

Limit any_limit(std::int64_t refill_most) {
  static constexpr std::array<std::int64_t, 11> periods{
      second, second, second, 1000, 1, 60 * second, 3600 * second, day, 1'000'003, 999'983 * second, max_quantity};
  static constexpr std::array<std::int64_t, 12> refills{
      1, 2, 3, 7, 10, 100, 1000, 999'983, 1'000'000, std::int64_t{1} << 40, max_quantity - 1, max_quantity};
  static constexpr std::array<std::int64_t, 10> capacities{
      1, 2, 3, 5, 10, 100, 1000, 1'000'000, max_quantity - 1, max_quantity};
  const std::int64_t period_us = one_of(periods);
  const std::int64_t refill = std::min(one_of(refills), refill_most);
  return fitted(one_of(capacities), refill, period_us);
}

Walk::Walk(const Terrain& terrain) : terrain_(terrain), plan_(any_limit(terrain.refill_most)) {
  plans_.push_back(plan_);
  while (terrain_.plan_changes && plans_.size() < 3) plans_.push_back(another_plan(plan_, terrain_.refill_most));
  const Micros span = terrain_.latest - terrain_.earliest;
  now_ = terrain_.earliest + span / 1000 * *rc::gen::inRange(0, 1000);
}

model::Input Walk::next(const std::optional<model::State>& stored) {
  if (plans_.size() > 1 && one_in(8)) plan_ = plans_[*rc::gen::inRange<std::size_t>(0, plans_.size())];

  // Costs: nothing, one, all, more than there can be, what is left and one more than that.
  const std::int64_t left = model::step(stored, {plan_, now_, peek}).decision.remaining;
  const std::int64_t capacity = plan_.capacity();
  const std::array<std::int64_t, 11> costs{1,    1,        1,           2, 0, capacity, left + 1, capacity / 2,
                                           left, capacity, capacity + 1};
  const Cost cost = Cost::make(std::min(one_of(costs), max_quantity)).value();

  const Decision at_once = model::step(stored, {plan_, now_, cost}).decision;
  const std::int64_t flips = at_once.retry_after ? at_once.retry_after->count() : 0;
  const std::int64_t time_to_full = plan_.time_to_full().count();
  const std::array<std::int64_t, 12> lattice{0,
                                             std::int64_t{1} << *rc::gen::inRange(0, 52),  // years, too
                                             1,
                                             1000,
                                             plan_.emission_interval().count(),
                                             flips,
                                             flips,
                                             at_once.reset_after.count(),
                                             time_to_full,
                                             2 * time_to_full + 1,
                                             3 * time_to_full,
                                             5 * time_to_full + 3 * second};
  std::int64_t step = one_of(lattice) + *rc::gen::inRange(-1, 2);
  if (terrain_.clock_back ? one_in(6) : step < 0) step = -step;
  now_ = std::clamp(now_ + Micros{step}, terrain_.earliest, terrain_.latest);
  return {plan_, now_, cost};
}

bool Walk::forgets(const model::Output& written, Instant now) const {
  return now > written.alive_until && one_in(2);
}

}  // namespace weir::suites
