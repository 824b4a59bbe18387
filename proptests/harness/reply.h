#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::harness {

/// What Redis answered, as a value. RESP2: what a Lua script can return.
struct Reply {
  enum class Kind : std::uint8_t { nil, integer, string, status, error, array };

  Kind kind = Kind::nil;
  std::int64_t integer = 0;       // kind integer
  std::string text{};             // kinds string, status, error
  std::vector<Reply> elements{};  // kind array

  [[nodiscard]] bool is_error() const noexcept { return kind == Kind::error; }
  bool operator==(const Reply&) const = default;
};

/// One line for people: `{1, "a\x00b", nil}`, `(error) ERR ...`. Binary is escaped.
[[nodiscard]] std::string show(const Reply& reply);

/// One command: its words, binary safe.
using Command = std::vector<std::string>;

/// One line for people: `SET rl:{a} "\x00..." PX 1000`.
[[nodiscard]] std::string show(const Command& command);

}  // namespace weir::harness
