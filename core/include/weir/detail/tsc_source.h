#pragma once

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace weir::detail {

/// Whether the processor promises a counter that neither stops nor changes its pace.
[[nodiscard]] inline bool has_invariant_tsc() noexcept {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  constexpr unsigned power_management = 0x8000'0007;
  constexpr unsigned invariant_tsc = 1U << 8;
  return __get_cpuid(power_management, &eax, &ebx, &ecx, &edx) != 0 && (edx & invariant_tsc) != 0;
#else
  return false;
#endif
}

/// Whether the kernel keeps its own time by that counter. It stops doing so when it sees it stray.
[[nodiscard]] inline bool kernel_trusts_tsc() noexcept {
  const int file = ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char name[8] = {};
  const auto length = ::read(file, name, sizeof name);
  ::close(file);
  return length > 0 && std::string_view{name, static_cast<std::size_t>(length)} == "tsc\n";
}

/// The processor's time-stamp counter beside CLOCK_MONOTONIC: a `Source` of DisciplinedTime.
class TscSource {
 public:
  [[nodiscard]] static std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
  }

  [[nodiscard]] static std::int64_t steady_ns() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }

  /// Looks once in 64 times, which is every 6 s: it reads a file.
  [[nodiscard]] bool trusted() noexcept {
    constexpr unsigned one_in = 64;
    if (asked_++ % one_in != 0) return true;
    return has_invariant_tsc() && kernel_trusts_tsc();
  }

 private:
  unsigned asked_ = 0;
};

}  // namespace weir::detail
