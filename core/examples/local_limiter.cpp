// Ten requests a second for each tenant, in this process.

#include <weir/local_limiter.h>
#include <weir/tsc_clock.h>
#include <cstdio>

int main() {
  const auto limit = weir::Limit::make(10, 10, weir::Micros{1'000'000});
  if (!limit) {
    std::fprintf(stderr, "%s\n", limit.error().message().c_str());
    return 1;
  }
  weir::TscClock clock;
  weir::LocalLimiter limiter{*limit, {.live_keys = 100'000, .when_full = weir::WhenFull::deny}, clock.now()};

  int served = 0;
  for (int request = 0; request < 10; ++request) served += limiter.acquire("tenant 42", clock).allowed();
  const weir::Decision all = limiter.acquire("tenant 42", clock, weir::Cost::make(10).value()).decision(*limit);
  std::printf("%d served; for ten more at once wait %lld us\n", served,
              static_cast<long long>(all.retry_after->count()));
  return served == 10 && !all.allowed() ? 0 : 1;
}
