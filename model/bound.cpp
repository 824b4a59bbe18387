#include "model/bound.h"

#include <vector>

namespace weir::model {
namespace {

__extension__ using Units = __int128;  // 1/P of a token; 2^51 tokens by 2^51 units by 2^20 calls fit

/// All first calls between which and the present one the clock reached the same furthest reading,
/// and the best of them. Bars stand on a stack with their readings falling from bottom to top.
struct Bar {
  Units furthest;         // n · reading
  Units head_start;       // of the best first call: n · its reading − units admitted before it
  std::size_t first;      // that call
  Units lead_below;       // largest (head_start − furthest) in this bar and those below it
  std::size_t bar_index;  // the bar that has it
};

}  // namespace

std::optional<Window> worst_window(const Limit& limit, std::span<const Call> history) {
  const Units n = limit.refill();
  const Units unit = limit.units_per_token();
  const Units full = limit.capacity() * unit;

  std::optional<Window> worst;
  Units worst_excess = 0;
  std::vector<Bar> bars;
  Units admitted = 0;  // units, in this stretch
  Units high_water = 0;

  for (std::size_t last = 0; last < history.size(); ++last) {
    const Call& call = history[last];
    const Units reading = n * call.now.time_since_epoch().count();
    if (last == 0 || high_water - reading > full) {
      bars.clear();
      admitted = 0;
      high_water = reading;
    }
    high_water = std::max(high_water, reading);

    // Bars that this reading overtops become one; a call that was admitted opens a window.
    std::optional<Bar> bar;
    if (call.admitted && call.cost > 0) bar = Bar{reading, reading - admitted, last, 0, 0};
    while (!bars.empty() && bars.back().furthest <= reading) {
      if (!bar || bars.back().head_start > bar->head_start) bar = bars.back();
      bars.pop_back();
    }
    if (bar) {
      bar->furthest = reading;
      bar->lead_below = bar->head_start - reading;
      bar->bar_index = bars.size();
      if (!bars.empty() && bars.back().lead_below >= bar->lead_below) {
        bar->lead_below = bars.back().lead_below;
        bar->bar_index = bars.back().bar_index;
      }
      bars.push_back(*bar);
    }
    if (!call.admitted || call.cost == 0) continue;

    admitted += call.cost * unit;
    const Units excess = admitted + bars.back().lead_below - full;
    if (worst && excess <= worst_excess) continue;
    const Bar& best = bars[bars.back().bar_index];
    const auto first_reading = n * history[best.first].now.time_since_epoch().count();
    const Units before = first_reading - best.head_start;
    worst_excess = excess;
    worst = Window{.first = best.first,
                   .last = last,
                   .admitted = static_cast<std::int64_t>((admitted - before) / unit),
                   .entitled = Rational{Integer{full + best.furthest - first_reading}, Integer{unit}}};
  }
  return worst;
}

}  // namespace weir::model
