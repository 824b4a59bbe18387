#include "model/promises.h"

#include <rapidcheck/boost_test.h>
#include <boost/test/unit_test.hpp>
#include <type_traits>
#include <vector>

#include "model/bound.h"
#include "proptests/suites/support/limiters.h"
#include "proptests/suites/support/show.h"
#include "proptests/suites/support/walk.h"

namespace weir {
namespace {

const model::Promises<model::State> model_promises{suites::by_the_model};
const model::Promises<Bucket> core_promises{suites::by_core};

/// Somewhere on a walk: what is stored there, and the call that comes next.
struct Place {
  std::optional<model::State> state;
  std::optional<Bucket> bucket;
  std::optional<model::Output> written;
  std::optional<Limit> writer;
  model::Input input;
};

Place anywhere(const suites::Terrain& terrain = {}) {
  suites::Walk walk{terrain};
  Place place{{}, {}, {}, {}, walk.next({})};
  for (int left = *rc::gen::inRange(0, 12); left > 0; --left) {
    const model::Output output = model::step(place.state, place.input);
    place.state = output.after;
    if (output.writes) {
      place.bucket = suites::in_units(*output.after);
      place.written = output;
      place.writer = place.input.limit;
    }
    place.input = walk.next(place.state);
  }
  RC_LOG() << (place.bucket ? "stored" : "absent") << ", then " << place.input << std::endl;
  return place;
}

bool clock_went_back(const Place& place) {
  return place.state && place.input.now < place.state->as_of;
}
bool plan_changed(const Place& place) {
  return place.bucket && !written_under(*place.bucket, place.input.limit);
}

/// Times hold from what is stored on. What a peek or a `never` tells across a change of plan or a clock that
/// went back is what a call would find at its instant; it is not stored.
bool tells_times_of_what_is_stored(const Place& place) {
  return (!clock_went_back(place) && !plan_changed(place)) || model::step(place.state, place.input).writes;
}

/// On the model and on core.
template <class Promise>
void holds(const Place& place, const Promise& promise) {
  RC_ASSERT(promise(model_promises, place.state));
  RC_ASSERT(promise(core_promises, place.bucket));
}

BOOST_AUTO_TEST_SUITE(promises_suite)

RC_BOOST_PROP(a_wait_that_is_told_is_enough_and_one_microsecond_less_is_not, ()) {
  const Place place = anywhere();
  RC_PRE(tells_times_of_what_is_stored(place));
  holds(place, [&](const auto& limiter, const auto& stored) {
    return limiter.a_wait_that_is_told_is_enough_and_not_too_long(stored, place.input);
  });
}

RC_BOOST_PROP(a_bucket_is_full_exactly_when_it_was_told_to_be, ()) {
  const Place place = anywhere();
  RC_PRE(tells_times_of_what_is_stored(place));
  holds(place, [&](const auto& limiter, const auto& stored) {
    return limiter.a_bucket_is_full_exactly_after_its_reset(stored, place.input);
  });
}

RC_BOOST_PROP(a_batch_is_its_sequence, ()) {
  Place place = anywhere();
  const auto part = *rc::gen::inRange<std::int64_t>(0, place.input.cost.tokens() + 1);
  const Cost more = Cost::make(place.input.cost.tokens() - part).value();
  place.input.cost = Cost::make(part).value();
  holds(place, [&](const auto& limiter, const auto& stored) {
    return limiter.a_batch_is_its_sequence(stored, place.input, more);
  });
}

RC_BOOST_PROP(only_a_grant_leaves_a_trace, ()) {
  const Place place = anywhere();
  holds(place, [&](const auto& limiter, const auto& stored) {
    return limiter.only_a_grant_leaves_a_trace(stored, place.input, clock_went_back(place), plan_changed(place));
  });
}

RC_BOOST_PROP(a_raise_refuses_nobody_whom_the_old_plan_would_have_allowed, ()) {
  const Place place = anywhere({.plan_changes = false});
  const Limit& old = place.input.limit;
  // A greater capacity, a faster rate in units that need not fit the old ones, or both.
  const std::int64_t period_us = *rc::gen::element<std::int64_t>(old.period().count(), 1, 7, 1000, 1'000'003);
  const auto rate = model::Rational{old.refill(), old.period().count()} * period_us;
  RC_PRE(rate <= max_quantity);
  const auto refill = static_cast<std::int64_t>(model::ceil(numerator(rate), denominator(rate)));
  const auto capacity = old.capacity() + *rc::gen::element<std::int64_t>(0, 0, 1, old.capacity());
  const auto raised = Limit::make(capacity, std::max<std::int64_t>(refill, 1), Micros{period_us});
  RC_PRE(raised.has_value());
  holds(place, [&](const auto& limiter, const auto& stored) {
    return limiter.a_raise_refuses_nobody(stored, place.input, *raised);
  });
}

RC_BOOST_PROP(an_expiry_is_never_seen, ()) {
  Place place = anywhere();
  RC_PRE(place.written.has_value());
  // From one time-to-full before the earliest instant at which the key may be gone.
  const Instant gone = place.written->alive_until + Micros{1};
  const Micros time_to_full = place.writer->time_to_full();
  const Micros later = *rc::gen::element(Micros{0}, Micros{1}, time_to_full, 2 * time_to_full);
  place.input.now = gone - time_to_full + later;
  RC_PRE(place.input.now <= max_instant);
  holds(place, [&](const auto& limiter, const auto& stored) {
    return limiter.a_bucket_that_may_be_gone_is_a_full_one(stored, place.input);
  });
}

template <class State>
std::vector<model::Call> history_of(const model::Limiter<State>& limiter, const std::vector<model::Input>& inputs,
                                    const std::vector<bool>& forgotten) {
  std::vector<model::Call> history;
  std::optional<State> stored;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (forgotten[k]) stored.reset();
    const auto answer = limiter(stored, inputs[k]);
    history.push_back({inputs[k].now, inputs[k].cost.tokens(), answer.decision.allowed()});
    stored = answer.after;
  }
  return history;
}

RC_BOOST_PROP(the_bound_holds_in_every_window_of_a_walk_whatever_the_clock_does_and_whenever_keys_expire, ()) {
  suites::Walk walk{{.plan_changes = false}};
  std::optional<model::State> state;
  std::optional<model::Output> written;
  std::vector<model::Input> inputs;
  std::vector<bool> forgotten;
  for (int left = *rc::gen::inRange(1, 100); left > 0; --left) {
    const model::Input input = walk.next(state);
    const bool forgets = state && walk.forgets(*written, input.now);
    if (forgets) state.reset();
    const model::Output output = model::step(state, input);
    state = output.after;
    if (output.writes) written = output;
    inputs.push_back(input);
    forgotten.push_back(forgets);
  }
  const Limit& limit = inputs.front().limit;
  for (const auto& history : {history_of<model::State>(suites::by_the_model, inputs, forgotten),
                              history_of<Bucket>(suites::by_core, inputs, forgotten)}) {
    const auto worst = model::worst_window(limit, history);
    if (worst && worst->broken()) {
      RC_LOG() << limit << ": " << worst->admitted << " admitted from call " << worst->first << " to call "
               << worst->last << ", " << worst->entitled << " due" << std::endl;
      for (std::size_t k = 0; k < history.size(); ++k) {
        RC_LOG() << "  " << inputs[k] << (history[k].admitted ? " admitted" : "")
                 << (forgotten[k] ? ", forgotten before" : "") << std::endl;
      }
    }
    RC_ASSERT((!worst || !worst->broken()));  // in brackets: RC_ASSERT takes || apart
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
