#include "model/shrink.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace weir::model {
namespace {

using Key = std::vector<std::int64_t>;

constexpr std::int64_t one_second_us = 1'000'000;

/// Whole numbers by size, then text: by length, which is enough for the handful of bad ones there are.
void add_quantity(Key& key, const Quantity& quantity) {
  key.push_back(quantity.is_whole() ? 0 : 1);
  key.push_back(quantity.is_whole() ? std::abs(quantity.whole) : static_cast<std::int64_t>(quantity.odd->size()));
  key.push_back(quantity.is_whole() && quantity.whole < 0 ? 1 : 0);
}

/// One bad number of each kind: whichever of them still fails stands for all that do, so that one bug
/// comes to one counterexample whatever bad number it was found with.
const std::vector<Quantity>& plain_bad_quantities() {
  static const std::vector<Quantity> plain = [] {
    std::vector<Quantity> numbers{0, -1, max_quantity + 1};
    for (const char* text : {"", "1.5", "abc", "nan", "inf", "1e17", "1e300"}) numbers.emplace_back(std::string{text});
    return numbers;
  }();
  return plain;
}

bool is_bad(const Quantity& quantity) {
  return !quantity.is_whole() || quantity.whole < 1 || quantity.whole > max_quantity;
}

std::size_t tenants_in(const Scenario& scenario) {
  std::set<int> tenants;
  for (const TimedCall& call : scenario.calls) tenants.insert(call.tenant);
  return tenants.size();
}

Key key_of(const Scenario& scenario) {
  Key key;
  key.reserve(16 + scenario.calls.size() * 8 + scenario.plans.size() * 6);
  std::int64_t odd = 0;
  std::int64_t moves = 0;
  std::int64_t backward = 0;
  std::int64_t distance = 0;
  std::int64_t switches = 0;
  for (std::size_t index = 0; index < scenario.calls.size(); ++index) {
    const TimedCall& call = scenario.calls[index];
    odd += cost_of(call) ? 0 : 1;
    moves += call.advance_us == 0 ? 0 : 1;
    backward += call.advance_us < 0 ? 1 : 0;
    distance += std::min<std::int64_t>(std::abs(call.advance_us), std::int64_t{1} << 50);
    if (index > 0 && call.plan != scenario.calls[index - 1].plan) ++switches;
  }
  key.push_back(static_cast<std::int64_t>(scenario.calls.size()));
  key.push_back(static_cast<std::int64_t>(tenants_in(scenario)));
  key.push_back(static_cast<std::int64_t>(scenario.plans.size()));
  key.push_back(switches);
  key.push_back(odd);
  key.push_back(backward);
  key.push_back(moves);
  for (const Plan& plan : scenario.plans) {
    key.push_back(plan.period_us == Quantity{one_second_us} ? 0 : 1);
    add_quantity(key, plan.period_us);
  }
  for (const Plan& plan : scenario.plans) {
    add_quantity(key, plan.capacity);
    add_quantity(key, plan.refill);
  }
  for (const TimedCall& call : scenario.calls) add_quantity(key, call.cost);
  key.push_back(distance);
  for (const TimedCall& call : scenario.calls) {
    key.push_back(std::abs(call.advance_us));
    key.push_back(call.advance_us < 0 ? 1 : 0);
  }
  for (const TimedCall& call : scenario.calls) {
    key.push_back(call.tenant);
    key.push_back(call.plan);
  }
  return key;
}

/// What the key does not tell apart: when it begins, and which text stands for no number.
auto rest_of(const Scenario& scenario) {
  std::string odd;
  for (const Plan& plan : scenario.plans)
    odd += plan.capacity.text() + ' ' + plan.refill.text() + ' ' + plan.period_us.text() + ' ';
  for (const TimedCall& call : scenario.calls) odd += call.cost.text() + ' ';
  return std::pair{scenario.start, odd};
}

/// Simplest first, without repetitions. The keys are made once: comparing makes two each time.
void sort_by_simplicity(std::vector<Scenario>& scenarios) {
  std::vector<std::pair<Key, Scenario>> keyed;
  keyed.reserve(scenarios.size());
  for (Scenario& scenario : scenarios) keyed.emplace_back(key_of(scenario), std::move(scenario));
  std::sort(keyed.begin(), keyed.end(), [](const auto& left, const auto& right) {
    if (left.first != right.first) return left.first < right.first;
    return rest_of(left.second) < rest_of(right.second);
  });
  scenarios.clear();
  for (auto& [key, scenario] : keyed)
    if (scenarios.empty() || scenarios.back() != scenario) scenarios.push_back(std::move(scenario));
}

std::int64_t scaled(std::int64_t advance, std::int64_t to, std::int64_t from, std::int64_t tick) {
  __extension__ using int128 = __int128;
  if (from == 0) return advance;
  const int128 exact = int128{advance} * to / from;
  const int128 whole = exact / tick * tick;
  constexpr std::int64_t most = std::int64_t{1} << 52;
  return static_cast<std::int64_t>(std::clamp<int128>(whole, -most, most));
}

/// Numbers to try in place of this one, smallest first.
std::vector<std::int64_t> lower_numbers(std::int64_t number, std::int64_t least) {
  std::vector<std::int64_t> lower;
  for (const std::int64_t candidate :
       {least, least + 1, least + 2, number / 10, number / 2, number - number / 4, number - 1})
    if (least <= candidate && candidate < number) lower.push_back(candidate);
  std::sort(lower.begin(), lower.end());
  lower.erase(std::unique(lower.begin(), lower.end()), lower.end());
  return lower;
}

class Shrinker {
 public:
  Shrinker(Scenario failing, const Grain& grain, const Fails& fails, std::size_t most_runs)
      : current_(canonical(std::move(failing))), grain_(grain), fails_(fails), most_runs_(most_runs) {}

  Shrunk run() {
    bool smaller = true;
    while (smaller && !gave_up_) {
      smaller = false;
      while (drop_blocks()) smaller = true;
      for (const auto move :
           {&Shrinker::begin_at_the_usual_start, &Shrinker::one_tenant, &Shrinker::fewer_plans, &Shrinker::merge_calls,
            &Shrinker::lower_plans, &Shrinker::lower_costs, &Shrinker::still_clock, &Shrinker::shorter_times,
            &Shrinker::fewer_tokens_and_less_time, &Shrinker::share_out_a_call, &Shrinker::sorted_costs}) {
        while (!gave_up_ && (this->*move)()) smaller = true;
      }
    }
    return {std::move(current_), runs_, gave_up_};
  }

 private:
  /// Runs the candidates that are simpler than what we have, and goes on from the simplest that fails.
  bool accept_simplest(std::vector<Scenario> candidates) {
    for (Scenario& candidate : candidates) candidate = canonical(std::move(candidate));
    std::erase_if(candidates,
                  [&](const Scenario& candidate) { return candidate.calls.empty() || !simpler(candidate, current_); });
    sort_by_simplicity(candidates);

    constexpr std::size_t batch = 48;
    for (std::size_t begin = 0; begin < candidates.size(); begin += batch) {
      const std::size_t count = std::min({batch, candidates.size() - begin, most_runs_ - runs_});
      if (count == 0) {
        gave_up_ = true;
        return false;
      }
      const std::span<const Scenario> some{candidates.data() + begin, count};
      const std::vector<bool> failed = fails_(some);
      runs_ += count;
      const auto first = std::find(failed.begin(), failed.end(), true);
      if (first != failed.end()) {
        current_ = some[static_cast<std::size_t>(first - failed.begin())];
        return true;
      }
    }
    return false;
  }

  /// Without calls [begin, begin + count): the calls after it at the same instants, or at the same gaps.
  static Scenario without(const Scenario& scenario, std::size_t begin, std::size_t count, bool keep_instants) {
    Scenario rest = scenario;
    std::int64_t skipped = 0;
    for (std::size_t index = begin; index < begin + count; ++index) skipped += scenario.calls[index].advance_us;
    const auto from = rest.calls.begin() + static_cast<std::ptrdiff_t>(begin);
    rest.calls.erase(from, from + static_cast<std::ptrdiff_t>(count));
    if (keep_instants && begin < rest.calls.size()) {
      if (begin == 0)
        rest.start += Micros{skipped};
      else
        rest.calls[begin].advance_us += skipped;
    }
    return rest;
  }

  bool drop_blocks() {
    for (std::size_t size = std::max<std::size_t>(current_.calls.size() / 2, 1); size > 0; size /= 2) {
      std::vector<Scenario> candidates;
      for (std::size_t begin = 0; begin < current_.calls.size(); begin += size) {
        const std::size_t count = std::min(size, current_.calls.size() - begin);
        candidates.push_back(without(current_, begin, count, true));
        candidates.push_back(without(current_, begin, count, false));
      }
      if (accept_simplest(std::move(candidates))) return true;
    }
    return false;
  }

  bool begin_at_the_usual_start() {
    if (current_.start == grain_.start && current_.calls.front().advance_us == 0) return false;
    Scenario moved = current_;
    moved.start = grain_.start;
    moved.calls.front().advance_us = 0;
    // "When" is no part of the order; it is settled once, here.
    ++runs_;
    const std::vector<bool> failed = fails_(std::span{&moved, 1});
    if (failed.front()) current_ = std::move(moved);
    return false;
  }

  bool one_tenant() {
    if (tenants_in(current_) < 2) return false;
    Scenario merged = current_;
    for (TimedCall& call : merged.calls) call.tenant = 0;
    return accept_simplest({std::move(merged)});
  }

  bool fewer_plans() {
    std::vector<Scenario> candidates;
    for (std::size_t from = 0; from < current_.plans.size(); ++from) {
      for (std::size_t to = 0; to < current_.plans.size(); ++to) {
        if (from == to) continue;
        Scenario one_less = current_;
        for (TimedCall& call : one_less.calls)
          if (call.plan == static_cast<int>(from)) call.plan = static_cast<int>(to);
        candidates.push_back(std::move(one_less));
      }
    }
    return accept_simplest(std::move(candidates));
  }

  bool merge_calls() {
    std::vector<Scenario> candidates;
    for (std::size_t index = 0; index + 1 < current_.calls.size(); ++index) {
      const TimedCall& call = current_.calls[index];
      const TimedCall& next = current_.calls[index + 1];
      if (call.tenant != next.tenant || call.plan != next.plan) continue;
      if (!call.cost.is_whole() || !next.cost.is_whole()) continue;
      for (const bool at_the_first : {true, false}) {
        Scenario merged = without(current_, index, 1, true);
        TimedCall& both = merged.calls[index];
        both.cost = call.cost.whole + next.cost.whole;
        if (at_the_first) {
          both.advance_us -= next.advance_us;
          if (index + 1 < merged.calls.size()) merged.calls[index + 1].advance_us += next.advance_us;
        }
        candidates.push_back(std::move(merged));
      }
    }
    return accept_simplest(std::move(candidates));
  }

  /// A plan's number lowered, with the costs that hung on the capacity and the times that hung on the
  /// rate lowered alongside, and without.
  bool lower_plans() {
    struct Way {
      bool all_plans;
      bool scale_times;
      bool lower_costs;
    };
    constexpr Way ways[]{{true, true, true},  {true, true, false},  {true, false, true},  {true, false, false},
                         {false, true, true}, {false, true, false}, {false, false, true}, {false, false, false}};
    std::vector<Scenario> candidates;
    for (std::size_t index = 0; index < current_.plans.size(); ++index) {
      const Plan plan = current_.plans[index];
      const auto with = [&](const Plan& lowered, std::int64_t to, std::int64_t from) {
        for (const auto& [all_plans, scale_times, lower_costs] : ways) {
          Scenario candidate = current_;
          candidate.plans[index] = lowered;
          if (all_plans) {
            if (current_.plans.size() < 2) continue;
            for (Plan& other : candidate.plans) {
              if (other.capacity == plan.capacity) other.capacity = lowered.capacity;
              if (other.refill == plan.refill) other.refill = lowered.refill;
              if (other.period_us == plan.period_us) other.period_us = lowered.period_us;
            }
          }
          for (TimedCall& call : candidate.calls) {
            if (scale_times) call.advance_us = scaled(call.advance_us, to, from, grain_.tick_us);
            if (!lower_costs || !call.cost.is_whole() || !plan.capacity.is_whole() || !lowered.capacity.is_whole())
              continue;
            const std::int64_t fall = plan.capacity.whole - lowered.capacity.whole;
            const std::int64_t least = std::max(grain_.least_cost, std::min<std::int64_t>(1, call.cost.whole));
            if (fall > 0 && call.cost.whole > 1) call.cost.whole = std::max(least, call.cost.whole - fall);
          }
          candidates.push_back(std::move(candidate));
        }
      };
      if (plan.capacity.is_whole()) {
        for (const std::int64_t lower : lower_numbers(plan.capacity.whole, grain_.least_capacity)) {
          Plan lowered = plan;
          lowered.capacity = lower;
          with(lowered, lower, plan.capacity.whole);
        }
      }
      if (plan.refill.is_whole()) {
        for (const std::int64_t lower : lower_numbers(plan.refill.whole, grain_.least_refill)) {
          Plan lowered = plan;
          lowered.refill = lower;
          with(lowered, plan.refill.whole, lower);
        }
      }
      if (plan.period_us.is_whole() && plan.period_us.whole != one_second_us) {
        auto periods = lower_numbers(plan.period_us.whole, grain_.least_period_us);
        if (grain_.least_period_us <= one_second_us) periods.push_back(one_second_us);
        for (const std::int64_t period : periods) {
          Plan lowered = plan;
          lowered.period_us = period;
          with(lowered, period, plan.period_us.whole);
        }
      }
      for (const auto field : {&Plan::capacity, &Plan::refill, &Plan::period_us}) {
        if (!is_bad(plan.*field)) continue;
        for (const Quantity& plain : plain_bad_quantities()) {
          Scenario candidate = current_;
          candidate.plans[index].*field = plain;
          candidates.push_back(std::move(candidate));
        }
      }
    }
    return accept_simplest(std::move(candidates));
  }

  bool lower_costs() {
    std::vector<Scenario> candidates;
    for (std::size_t index = 0; index < current_.calls.size(); ++index) {
      const Quantity cost = current_.calls[index].cost;
      const auto with = [&](const Quantity& lowered) {
        Scenario candidate = current_;
        candidate.calls[index].cost = lowered;
        candidates.push_back(std::move(candidate));
      };
      if (is_bad(cost) && cost != Quantity{0}) {
        for (const Quantity& plain : plain_bad_quantities()) with(plain);
      }
      if (!cost.is_whole()) continue;
      if (cost.whole < -1) with(cost.whole / 2);
      for (const std::int64_t lower : lower_numbers(cost.whole, std::max<std::int64_t>(grain_.least_cost, 0)))
        with(lower);
    }
    return accept_simplest(std::move(candidates));
  }

  /// The same tokens, the small ones first.
  bool sorted_costs() {
    std::vector<Scenario> candidates;
    for (std::size_t one = 0; one < current_.calls.size(); ++one) {
      for (std::size_t other = one + 1; other < current_.calls.size(); ++other) {
        Scenario candidate = current_;
        std::swap(candidate.calls[one].cost, candidate.calls[other].cost);
        candidates.push_back(std::move(candidate));
      }
    }
    return accept_simplest(std::move(candidates));
  }

  /// A token less, and with it the time in which one comes back.
  bool fewer_tokens_and_less_time() {
    std::vector<Scenario> candidates;
    for (std::size_t index = 0; index < current_.calls.size(); ++index) {
      const auto cost = cost_of(current_.calls[index]);
      const auto limit = current_.plan_of(current_.calls[index]).limit();
      if (!cost || !limit || cost->tokens() <= std::max<std::int64_t>(grain_.least_cost, 0)) continue;
      const std::int64_t time = limit->emission_interval().count() / grain_.tick_us * grain_.tick_us;
      for (std::size_t later = 1; later < current_.calls.size(); ++later) {
        const std::int64_t advance = current_.calls[later].advance_us;
        for (const std::int64_t shorter : {std::int64_t{0}, advance - time}) {
          if (shorter < 0 || shorter >= advance) continue;
          Scenario candidate = current_;
          candidate.calls[index].cost.whole -= 1;
          candidate.calls[later].advance_us = shorter;
          candidates.push_back(std::move(candidate));
        }
      }
    }
    return accept_simplest(std::move(candidates));
  }

  /// A call less, and its tokens taken by two of the others: for a limiter that allows no call so large as
  /// two of them merged. Only where few calls are left, for there are many ways.
  bool share_out_a_call() {
    constexpr std::size_t few = 6;
    constexpr std::int64_t most_tokens = 8;
    std::vector<Scenario> candidates;
    const std::size_t calls = current_.calls.size();
    if (calls > few) return false;
    for (std::size_t gone = 0; gone < calls; ++gone) {
      const auto tokens = cost_of(current_.calls[gone]);
      if (!tokens || tokens->tokens() > most_tokens) continue;
      for (const bool keep_instants : {true, false}) {
        const Scenario rest = without(current_, gone, 1, keep_instants);
        for (std::size_t one = 0; one + 1 < calls; ++one) {
          for (std::size_t other = one + 1; other + 1 < calls; ++other) {
            if (!cost_of(rest.calls[one]) || !cost_of(rest.calls[other])) continue;
            for (std::int64_t share = 0; share <= tokens->tokens(); ++share) {
              Scenario candidate = rest;
              candidate.calls[one].cost.whole += share;
              candidate.calls[other].cost.whole += tokens->tokens() - share;
              candidates.push_back(std::move(candidate));
            }
          }
        }
      }
    }
    return accept_simplest(std::move(candidates));
  }

  bool still_clock() {
    std::vector<Scenario> candidates;
    for (std::size_t index = 1; index < current_.calls.size(); ++index) {
      if (current_.calls[index].advance_us != 0) with_advance(index, 0, candidates);
    }
    return accept_simplest(std::move(candidates));
  }

  /// Halving toward zero, which ends at the exact boundary where the failure is monotone in the time.
  bool shorter_times() {
    for (std::size_t index = 1; index < current_.calls.size(); ++index) {
      const std::int64_t advance = current_.calls[index].advance_us;
      if (advance == 0) continue;
      std::vector<Scenario> candidates;
      for (std::int64_t less = advance / 2 / grain_.tick_us * grain_.tick_us; less != 0;
           less = less / 2 / grain_.tick_us * grain_.tick_us)
        with_advance(index, advance - less, candidates);
      const std::int64_t one_tick = advance > 0 ? grain_.tick_us : -grain_.tick_us;
      with_advance(index, one_tick, candidates);
      with_advance(index, advance - one_tick, candidates);
      for (const Plan& plan : current_.plans) {
        if (const auto limit = plan.limit()) {
          for (const std::int64_t round : {limit->emission_interval().count(), limit->time_to_full().count()})
            if (round % grain_.tick_us == 0 && round < std::abs(advance))
              with_advance(index, advance > 0 ? round : -round, candidates);
        }
      }
      if (accept_simplest(std::move(candidates))) return true;
    }
    return false;
  }

  void with_advance(std::size_t index, std::int64_t advance, std::vector<Scenario>& candidates) const {
    Scenario shifted = current_;
    const std::int64_t change = shifted.calls[index].advance_us - advance;
    shifted.calls[index].advance_us = advance;
    candidates.push_back(shifted);
    if (index + 1 < shifted.calls.size()) {
      shifted.calls[index + 1].advance_us += change;  // later calls stay at their instants
      candidates.push_back(std::move(shifted));
    }
  }

  Scenario current_;
  const Grain& grain_;
  const Fails& fails_;
  std::size_t most_runs_;
  std::size_t runs_ = 0;
  bool gave_up_ = false;
};

/// Counts through every choice of one digit per place, the last place fastest.
class Odometer {
 public:
  explicit Odometer(std::vector<std::size_t> sizes) : sizes_(std::move(sizes)), digits_(sizes_.size(), 0) {}
  [[nodiscard]] const std::vector<std::size_t>& digits() const { return digits_; }
  [[nodiscard]] bool next() {
    for (std::size_t place = digits_.size(); place-- > 0;) {
      if (++digits_[place] < sizes_[place]) return true;
      digits_[place] = 0;
    }
    return false;
  }

 private:
  std::vector<std::size_t> sizes_;
  std::vector<std::size_t> digits_;
};

template <class T>
void keep_unique(std::vector<T>& values) {
  std::vector<T> kept;
  for (T& value : values)
    if (std::find(kept.begin(), kept.end(), value) == kept.end()) kept.push_back(std::move(value));
  values = std::move(kept);
}

}  // namespace

bool simpler(const Scenario& left, const Scenario& right) {
  const Key left_key = key_of(left);
  const Key right_key = key_of(right);
  if (left_key != right_key) return left_key < right_key;
  return rest_of(left) < rest_of(right);
}

Scenario canonical(Scenario scenario) {
  std::vector<int> tenants;
  std::vector<int> plans;
  std::vector<Plan> used;
  const auto number = [](std::vector<int>& seen, int value) {
    const auto found = std::find(seen.begin(), seen.end(), value);
    if (found != seen.end()) return static_cast<int>(found - seen.begin());
    seen.push_back(value);
    return static_cast<int>(seen.size()) - 1;
  };
  for (TimedCall& call : scenario.calls) {
    call.tenant = number(tenants, call.tenant);
    const Plan& plan = scenario.plan_of(call);
    const auto same = std::find(used.begin(), used.end(), plan);
    call.plan = static_cast<int>(same - used.begin());
    if (same == used.end()) used.push_back(plan);
  }
  scenario.plans = std::move(used);
  return scenario;
}

Shrunk shrink(Scenario failing, const Grain& grain, const Fails& fails, std::size_t most_runs) {
  return Shrinker{std::move(failing), grain, fails, most_runs}.run();
}

namespace {

/// What the calls of a searched scenario may be made of, under one first plan.
struct Choices {
  std::vector<Quantity> costs;
  std::vector<std::int64_t> instants;  // of calls, from the start
  std::vector<std::size_t> plans;      // of calls after the first
};

Choices choices_under(std::size_t first_plan, const Scope& scope, const Grain& grain) {
  const Plan& plan = scope.plans[first_plan];
  const auto limit = plan.limit();
  const std::int64_t tick = grain.tick_us;
  const auto whole_ticks = [&](Micros time) { return (time.count() + tick - 1) / tick * tick; };
  const std::int64_t emission = limit ? whole_ticks(limit->emission_interval()) : one_second_us;
  const std::int64_t fill = limit ? whole_ticks(limit->time_to_full()) : one_second_us;

  Choices choices;
  const std::int64_t capacity = plan.capacity.is_whole() ? plan.capacity.whole : 1;
  for (const std::int64_t tokens : {std::int64_t{1}, capacity, capacity + 1, std::int64_t{0}})
    if (tokens >= grain.least_cost) choices.costs.emplace_back(tokens);
  choices.costs.insert(choices.costs.end(), scope.bad_costs.begin(), scope.bad_costs.end());
  keep_unique(choices.costs);
  choices.instants = {0, tick, emission - tick, emission, emission + tick, fill, 2 * fill};
  if (scope.clock_back) choices.instants.insert(choices.instants.end(), {-tick, -emission, -fill});
  keep_unique(choices.instants);
  choices.plans = {first_plan};
  if (scope.plan_changes)
    for (std::size_t other = 0; other < scope.plans.size(); ++other)
      if (other != first_plan) choices.plans.push_back(other);
  return choices;
}

/// Hands out every scenario of so many calls under one first plan; stops where `take` says so.
template <class Take>
bool each_scenario(std::size_t calls, std::size_t first_plan, const Scope& scope, const Grain& grain,
                   const Take& take) {
  const Choices choices = choices_under(first_plan, scope, grain);
  std::vector<std::size_t> sizes;
  for (std::size_t call = 0; call < calls; ++call) {
    sizes.push_back(call == 0 ? 1 : choices.instants.size());
    sizes.push_back(choices.costs.size());
    sizes.push_back(call == 0 ? 1 : choices.plans.size());
    sizes.push_back(call == 0 || !scope.tenants ? 1 : 2);
  }
  Odometer odometer{std::move(sizes)};
  do {
    Scenario candidate{.start = grain.start, .plans = scope.plans, .calls = {}};
    std::int64_t at = 0;
    bool backward = false;
    for (std::size_t call = 0; call < calls; ++call) {
      const std::size_t* digit = odometer.digits().data() + call * 4;
      const std::int64_t instant = choices.instants[digit[0]];
      backward = backward || instant < at;
      candidate.calls.push_back(TimedCall{.advance_us = instant - at,
                                          .tenant = static_cast<int>(digit[3]),
                                          .plan = static_cast<int>(choices.plans[digit[2]]),
                                          .cost = choices.costs[digit[1]]});
      at = instant;
    }
    if (backward && !scope.clock_back) continue;
    if (!take(canonical(std::move(candidate)))) return false;
  } while (odometer.next());
  return true;
}

}  // namespace

Searched search_below(const Scenario& below, const Scope& scope, const Grain& grain, const Fails& fails,
                      std::size_t most_runs) {
  Searched searched;
  constexpr std::size_t batch = 256;
  for (std::size_t calls = 1; calls <= std::min(scope.most_calls, below.calls.size()); ++calls) {
    std::vector<Scenario> candidates;
    bool all = true;
    for (std::size_t first_plan = 0; all && first_plan < scope.plans.size(); ++first_plan) {
      all = each_scenario(calls, first_plan, scope, grain, [&](Scenario candidate) {
        if (simpler(candidate, below)) candidates.push_back(std::move(candidate));
        return searched.runs + candidates.size() <= most_runs;
      });
    }
    if (!all) candidates.pop_back();
    sort_by_simplicity(candidates);
    for (std::size_t begin = 0; begin < candidates.size(); begin += batch) {
      const std::span<const Scenario> some{candidates.data() + begin, std::min(batch, candidates.size() - begin)};
      const std::vector<bool> failed = fails(some);
      searched.runs += some.size();
      const auto first = std::find(failed.begin(), failed.end(), true);
      if (first == failed.end()) continue;
      searched.found = some[static_cast<std::size_t>(first - failed.begin())];
      return searched;
    }
    if (!all) return searched;
  }
  searched.complete = true;
  return searched;
}

}  // namespace weir::model
