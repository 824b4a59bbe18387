#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "proptests/harness/lua_host.h"
#include "proptests/suites/harness/scratch.h"

namespace weir::harness {

inline Reply integer(std::int64_t value) {
  return {Reply::Kind::integer, value, {}, {}};
}
inline Reply text(std::string value) {
  return {Reply::Kind::string, 0, std::move(value), {}};
}
inline Reply status(std::string value) {
  return {Reply::Kind::status, 0, std::move(value), {}};
}
inline Reply error(std::string value) {
  return {Reply::Kind::error, 0, std::move(value), {}};
}
inline Reply array(std::vector<Reply> elements) {
  return {Reply::Kind::array, 0, {}, std::move(elements)};
}

inline Call call_of(const std::string& key, const Quantity& cost = "1") {
  return {.key = key,
          .capacity = "100",
          .refill = "50",
          .period_us = "1000000",
          .cost = cost,
          .now_us = 1'700'000'000'000'000,
          .client = 1,
          .attempt = 1};
}

/// A directory to write contracts to, each from the bodies of its functions.
struct LuaFolder : Scratch {
  LuaFolder() { write("s.lua", "return 1"); }

  /// keys on line 2, args on line 3, reply on line 4.
  LuaHost script(const std::string& keys, const std::string& args = "return {}",
                 const std::string& reply = "return { allowed = r == 1 }",
                 std::chrono::milliseconds deadline = std::chrono::seconds{2}) const {
    return LuaHost{
        write("c.lua",
              "return { name = 'n', promises = 'token_bucket', script = 's.lua',\n"
              "keys = function(call) " +
                  keys + " end,\nargs = function(call) " + args + " end,\nreply = function(r) " + reply + " end }"),
        deadline};
  }

  /// The body of take begins on line 2.
  LuaHost program(const std::string& take, std::chrono::milliseconds deadline = std::chrono::seconds{2}) const {
    return LuaHost{write("c.lua", "return { name = 'n', promises = 'token_bucket',\ntake = function(redis, call) " +
                                      take + " end }"),
                   deadline};
  }
};

}  // namespace weir::harness
