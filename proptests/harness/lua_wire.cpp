#include "proptests/harness/lua_wire.h"

#include "proptests/harness/lua_host.h"

namespace weir::harness::wire {

void write(Writer& out, const Call& call) {
  out.part([&] {
    for (const std::string* text : {&call.key, &call.capacity, &call.refill, &call.period_us, &call.cost})
      out.text(*text);
    out.number<std::int64_t>(call.now_us);
    out.number<std::int32_t>(call.client);
    out.number<std::int32_t>(call.attempt);
  });
}

void write(Writer& out, const Reply& reply) {
  out.number(reply.kind);
  switch (reply.kind) {
    case Reply::Kind::nil: return;
    case Reply::Kind::integer: return out.number<std::int64_t>(reply.integer);
    case Reply::Kind::string:
    case Reply::Kind::status:
    case Reply::Kind::error: return out.text(reply.text);
    case Reply::Kind::array:
      out.number(static_cast<std::uint32_t>(reply.elements.size()));
      for (const Reply& element : reply.elements) write(out, element);
      return;
  }
}

}  // namespace weir::harness::wire
