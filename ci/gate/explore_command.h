#pragma once

#include <CLI/CLI.hpp>

namespace weir::gate {

/// Adds `weir explore`. The call to make if it was chosen: its exit code (DESIGN, section 5).
[[nodiscard]] std::function<int()> add_explore_command(CLI::App& app);

}  // namespace weir::gate
