#pragma once

#include <functional>

#include "ci/gate/check.h"
#include "proptests/harness/lua_host.h"
#include "proptests/harness/server.h"

namespace weir::gate {

/// Judges what callers that overlap get: random interleavings of client programs step by step, and
/// real threads running free. Fills in the line; returns how many decisions were made.
[[nodiscard]] std::uint64_t judge_concurrency(Line& line, harness::Server& server, harness::LuaHost& host,
                                              const Domain& domain, const Effort& effort, const Progress& progress,
                                              const std::function<void()>& between);

}  // namespace weir::gate
