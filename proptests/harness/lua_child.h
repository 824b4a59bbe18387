#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weir::harness {

/// Memory that the user's Lua may use. Past it Lua raises "not enough memory".
inline constexpr std::size_t lua_memory_most = std::size_t{256} << 20;

/// Keys and arguments of one call, or commands of one step, together.
inline constexpr std::size_t lua_words_most = std::size_t{16} << 20;

/// The life of the Lua process: answers requests on `socket` until it closes. Counts in `progress` the
/// calls of a request that it has begun, so that the host knows in which one it hangs. `lock_up` is called
/// once Lua stands (it reads a seed from a file) and before it sees anything of the user's.
[[noreturn]] void run_lua_child(int socket, std::atomic<std::uint32_t>& progress, void (*lock_up)());

}  // namespace weir::harness
