#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weir::harness {

/// A value of the user's Lua as data: what a contract file returned, before it is checked.
struct LuaValue {
  enum class Kind : std::uint8_t { nil, boolean, number, string, table, function };

  Kind kind = Kind::nil;
  double number = 0;                                   // kind number; 0 or 1 of kind boolean
  std::string text;                                    // kind string
  std::vector<std::pair<LuaValue, LuaValue>> entries;  // kind table, in no particular order
  int line = 0;                                        // kind function: where it stands in the file
};

}  // namespace weir::harness
