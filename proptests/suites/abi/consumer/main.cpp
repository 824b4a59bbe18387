#include <weir/atomic_bucket.h>
#include <weir/bucket.h>
#include <weir/lease.h>
#include <weir/local_limiter.h>
#include <weir/tsc_clock.h>

int main() {
  constexpr auto limit = weir::Limit::make(1, 1, weir::Micros{1'000'000}).value();
  weir::TscClock clock;
  weir::LocalLimiter limiter{limit, {.live_keys = 10, .when_full = weir::WhenFull::deny}, clock.now()};
  const bool first = limiter.acquire("tenant", clock).allowed();
  const bool second = limiter.acquire("tenant", clock).allowed();
  return first && !second ? 0 : 1;
}
