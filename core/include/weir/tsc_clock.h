#pragma once

#include "weir/detail/disciplined_time.h"
#include "weir/detail/tsc_source.h"
#include "weir/time.h"

namespace weir {
/// CLOCK_MONOTONIC by way of the processor's time-stamp counter, at two fifths of its cost.
///
/// The same time line as `SteadyClock`, re-measured against it ten times a second; see
/// `detail::DisciplinedTime` for what that is worth. Where the counter cannot be trusted (not
/// x86-64, no invariant counter, a kernel that keeps time by something else, a virtual machine moved to
/// another host) it is `SteadyClock`, and says so by `counting()`.
/// Thread safety: any thread; all `TscClock`s of a process share one state.
class TscClock {
 public:
  [[nodiscard]] Instant now() const noexcept { return time_->now(); }
  [[nodiscard]] bool counting() const noexcept { return time_->counting(); }

 private:
  using Time = detail::DisciplinedTime<detail::TscSource>;

  [[nodiscard]] static Time* shared() {
    static Time time;
    return &time;
  }

  Time* time_ = shared();
};

}  // namespace weir
