#pragma once

#include <chrono>
#include <cstdint>

namespace weir {

/// A time line without a `now()`: whoever calls us says what time it is.
/// `LimiterClock::now()` and a `steady_clock::time_point` argument both fail to compile.
struct LimiterClock {};

/// Microseconds, because that is what Redis reports and what stays exact in a Lua double
/// (2^53 µs after 1970 is the year 2255).
using Micros = std::chrono::duration<std::int64_t, std::micro>;

/// Microseconds since the Unix epoch where the time is shared with Redis; any epoch in process.
/// In [0, max_instant].
using Instant = std::chrono::time_point<LimiterClock, Micros>;

inline constexpr Instant max_instant{Micros{std::int64_t{1} << 53}};

}  // namespace weir
