#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <ostream>

#include "weir/decision.h"
#include "weir/limit.h"
#include "weir/time.h"

/// Limits, costs and time steps for the suites of the core in process.
namespace weir::local_suite {

/// Uniform in the exponent: small numbers and large ones are equally likely.
inline rc::Gen<std::int64_t> magnitude(std::int64_t most) {
  const auto bits = static_cast<int>(64 - __builtin_clzll(static_cast<unsigned long long>(most)));
  return rc::gen::mapcat(rc::gen::inRange(0, bits + 1), [most](int width) {
    const std::int64_t high = width >= 62 ? most : std::min(most, std::int64_t{1} << width);
    return rc::gen::map(rc::gen::inRange<std::int64_t>(0, high), [](std::int64_t below) { return below + 1; });
  });
}

/// Valid by construction: the capacity is cut to what fits the rate.
inline rc::Gen<Limit> any_limit(std::int64_t most_refill = max_quantity) {
  return rc::gen::map(
      rc::gen::tuple(magnitude(std::int64_t{1} << 31), magnitude(most_refill), magnitude(std::int64_t{86'400'000'000})),
      [](const std::tuple<std::int64_t, std::int64_t, std::int64_t>& numbers) {
        const auto [capacity, refill, period] = numbers;
        const std::int64_t unit = period / std::gcd(refill, period);
        return Limit::make(std::min(capacity, max_quantity / unit), refill, Micros{period}).value();
      });
}

/// Those that one 64-bit word holds.
inline rc::Gen<Limit> one_word_limit() {
  return any_limit(8'000);
}

/// Mostly what is near the limit's own times, where answers flip; never negative.
inline rc::Gen<Micros> step_forward(const Limit& limit) {
  const std::int64_t interval = limit.emission_interval().count();
  const std::int64_t full = limit.time_to_full().count();
  return rc::gen::map(
      rc::gen::weightedOneOf<std::int64_t>({
          {6, rc::gen::element<std::int64_t>(0, 0, 1, interval - 1, interval, interval + 1, full - 1, full, full + 1)},
          {3, magnitude(std::max<std::int64_t>(2 * interval, 2))},
          {1, magnitude(std::max<std::int64_t>(2 * full, 2))},
      }),
      [](std::int64_t us) { return Micros{std::max<std::int64_t>(us, 0)}; });
}

/// Peeks, ones, parts of the capacity, all of it, and one more.
inline rc::Gen<Cost> any_cost(const Limit& limit) {
  const std::int64_t capacity = limit.capacity();
  return rc::gen::map(rc::gen::weightedOneOf<std::int64_t>(
                          {{1, rc::gen::just<std::int64_t>(0)},
                           {4, rc::gen::just<std::int64_t>(1)},
                           {3, rc::gen::map(magnitude(capacity), [](std::int64_t cost) { return cost; })},
                           {1, rc::gen::element<std::int64_t>(capacity - 1, capacity, capacity + 1)}}),
                      [](std::int64_t tokens) { return Cost::make(tokens).value(); });
}

}  // namespace weir::local_suite

namespace weir {

inline std::ostream& operator<<(std::ostream& out, const Limit& limit) {
  return out << limit.capacity() << " tokens, " << limit.refill() << " per " << limit.period().count() << " us";
}
inline std::ostream& operator<<(std::ostream& out, const Cost& cost) {
  return out << cost.tokens();
}
inline std::ostream& operator<<(std::ostream& out, const Decision& decision) {
  out << (decision.allowed()     ? "allowed"
          : decision.retry_after ? "denied"
                                 : "never")
      << ", remaining " << decision.remaining << ", reset " << decision.reset_after.count() << " us";
  if (decision.retry_after) out << ", retry " << decision.retry_after->count() << " us";
  return out;
}

}  // namespace weir
