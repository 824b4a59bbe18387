#include <utility>

#include "proptests/harness/error.h"
#include "proptests/harness/server.h"

namespace weir::harness {
namespace {

// No expiry and no key, as Redis says it (PEXPIRETIME).
constexpr std::int64_t no_expiry = -1;
constexpr std::int64_t no_key = -2;

}  // namespace

Command clock_command(Instant now) {
  return {"WEIR.CLOCK", std::to_string(now.time_since_epoch().count())};
}

Command look_command(const std::vector<std::string>& keys) {
  Command command{"WEIR.LOOK"};
  command.insert(command.end(), keys.begin(), keys.end());
  return command;
}

Look parse_look(const Reply& reply) {
  const std::vector<Reply>& fields = reply.elements;
  if (reply.kind != Reply::Kind::array || fields.size() < 2 || fields.size() % 2 != 0) {
    throw EnvironmentError{"WEIR.LOOK answered " + show(reply) +
                           ", not {writes, strays, bytes and expiry of each key}"};
  }
  Look look{.writes = fields[0].integer, .strays = fields[1].integer, .keys = {}};
  look.keys.reserve(fields.size() / 2 - 1);
  for (std::size_t i = 2; i < fields.size(); i += 2) {
    const std::int64_t expiry = fields[i + 1].integer;
    KeyState& key = look.keys.emplace_back();
    if (expiry != no_key) key.bytes = fields[i].text;
    if (expiry != no_key && expiry != no_expiry) key.expiry_ms = expiry;
  }
  return look;
}

}  // namespace weir::harness
