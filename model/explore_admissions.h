#pragma once

#include <cstdint>
#include <vector>

#include "weir/limit.h"

namespace weir::model {

/// What a limit entitles to, in the terms of `Admissions`: units, and ticks of a clock of its own.
/// Token bucket: a tick is a microsecond. Fixed window: a tick is a window, and each brings its capacity.
struct Entitlement {
  std::int64_t capacity;   // units
  std::int64_t refill;     // units a tick
  std::int64_t per_token;  // units
  std::int64_t back_most;  // ticks that the clock may fall below its furthest reading before all starts anew
  bool clock_goes_back;    // where it never does, more histories are alike

  [[nodiscard]] static constexpr Entitlement token_bucket(const Limit& limit) {
    const std::int64_t full = limit.capacity_units() / limit.refill();
    return {limit.capacity_units(), limit.refill(), limit.units_per_token(), full, true};
  }
  [[nodiscard]] static constexpr Entitlement fixed_window(std::int64_t capacity) {
    return {capacity, capacity, 1, 1, true};
  }
};

/// All that a search has to remember of a history to see over-admission in it, and in whatever follows.
///
/// The bound of DESIGN 2, for attempts that take time: each takes effect at some instant between its begin
/// and its end, and the limiter may choose which. So the bound is broken if, from the begin of one that is
/// admitted to any later instant, those that began and ended in between were admitted for more than
/// capacity + refill · (the furthest reading of the clock in between - the lowest that the first one met).
///
/// Kept is, of each such stretch, its level: what was admitted in it less what was refilled. A stretch whose
/// level is no lower than that of one that begins later says whatever the later one could say. A value.
class Admissions {
 public:
  Admissions(const Entitlement& entitlement, std::int64_t now);

  /// The clock shows `now`, and may have gone back.
  void clock(std::int64_t now);

  /// An attempt begins. What it returns is to be handed to `end`.
  [[nodiscard]] std::int64_t begin();

  /// It ended, and was admitted for so many tokens (0: denied, refused, unknown). True if that breaks the bound.
  bool end(std::int64_t begun, std::int64_t tokens);

  /// The limiter's data was lost: it may give its capacity once more. With the data went how far the clock had
  /// got. So it refills from the lowest reading that the first attempt hereafter could have met.
  void lose();

  /// The most that any stretch has used up of what it was entitled to, in units.
  [[nodiscard]] std::int64_t level() const noexcept;

  /// Numbers that are equal where two histories are equally close to breaking the bound, and stay so.
  void append_to(std::vector<std::int64_t>& numbers) const;

  /// Where among them an attempt began; -1: before all started anew.
  [[nodiscard]] std::int64_t place(std::int64_t begun) const noexcept;

 private:
  /// A stretch, by where it begins; the last one begins now.
  struct Stretch {
    std::int64_t id;
    std::int64_t pending;   // attempts that began here and have not ended
    std::int64_t level;     // units
    std::int64_t lowest;    // reading of the clock that the refill is counted from
    std::int64_t furthest;  // reading of the clock in it
    bool counts;            // one that began here, or before where that says more, was admitted
  };
  void start();
  void normalize();
  [[nodiscard]] bool is_open(const Stretch& stretch) const;

  Entitlement entitlement_;
  std::int64_t now_;
  std::int64_t furthest_;
  std::int64_t next_id_ = 0;
  bool empty_ = false;        // since data was lost, nobody who began later was admitted
  std::int64_t lost_at_ = 0;  // id of the stretch that the last loss began
  std::vector<Stretch> stretches_;
};

}  // namespace weir::model
