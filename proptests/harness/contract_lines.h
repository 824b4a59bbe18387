#pragma once

#include <map>
#include <string>
#include <string_view>

namespace weir::harness {

/// Where the fields of a contract stand in its source: "name" -> 1, "limits.capacity" -> 9 (1-based).
/// Fields of the last table constructor at the top level, as `return { name = ... }` writes them; a
/// table that is put together in another way has none. "" is where the table itself starts. Pure; any thread.
[[nodiscard]] std::map<std::string, int> field_lines(std::string_view source);

}  // namespace weir::harness
