#include "proptests/harness/explore_replay.h"

#include <algorithm>
#include <cassert>
#include <random>
#include <utility>

#include "proptests/harness/schedule.h"

namespace weir::harness::explore {
namespace {

std::string show(const Space& space, const std::vector<Standing>& clients, const Keyspace& keyspace) {
  std::string text;
  for (std::size_t client = 0; client < clients.size(); ++client) {
    const Standing& at = clients[client];
    text += client_name(static_cast<int>(client)) + " ended " + std::to_string(at.ended);
    if (at.dead) text += ", dead";
    if (at.node >= 0) text += ", in round trip " + std::to_string(space.replies(at.node).size() + 1);
    for (const Reply& reply : at.node >= 0 ? space.replies(at.node) : std::vector<Reply>{})
      text += " " + harness::show(reply);
    text += "; ";
  }
  for (const StoredKey& key : keyspace)
    text += harness::show(Command{key.name, key.bytes}) + " until " + std::to_string(key.expiry_ms) + "; ";
  return text;
}

/// The server and its clients as they run.
class Live {
 public:
  Live(Space& space, Server& server) : space_(space), server_(server), control_(server.connect()) {
    clients_.resize(static_cast<std::size_t>(space.scope().clients));
    connect_all();
    control_.run({"FLUSHALL"});
    control_.run({"SCRIPT", "FLUSH"});
    const State state = space.initial();
    for (const std::string& text : space.effects().scripts_in(state.scripts)) control_.run({"SCRIPT", "LOAD", text});
    set_clock(state.clock_us);
  }

  void act(const Happening& happening) {
    if (happening.client >= 0) {
      act_as(happening);
    } else {
      act_on_server(happening);
    }
    const Keyspace now = keys();
    if (now != keys_) stale_ = std::exchange(keys_, now);
  }

  [[nodiscard]] std::string show() const { return explore::show(space_, clients_, keys_); }

 private:
  void act_as(const Happening& happening) {
    const auto index = static_cast<std::size_t>(happening.client);
    Standing& own = clients_[index];
    if (happening.act == Act::dies) {
      connections_[index] = server_.connect();
      own = Standing{.ended = own.ended, .dead = true};
      return;
    }
    if (own.node < 0) own.node = space_.begin(happening.client, own.ended + 1, clock_us_);
    if (const auto* send = std::get_if<Send>(&space_.move(own.node)))
      own.node = space_.after(own.node, reply(happening, *send));
    if (std::holds_alternative<Send>(space_.move(own.node))) return;
    own = Standing{.ended = own.ended + (happening.retries ? 0 : 1)};
  }

  Reply reply(const Happening& happening, const Send& send) {
    Connection& connection = connections_[static_cast<std::size_t>(happening.client)];
    const Condition condition = happening.act == Act::out_of_memory ? Condition::out_of_memory
                                : happening.act == Act::read_only   ? Condition::read_only
                                                                    : Condition::normal;
    const Standing& own = clients_[static_cast<std::size_t>(happening.client)];
    Reply reply;
    if (happening.act != Act::lost_before && happening.act != Act::busy) {
      for (const Command& command : enter(condition)) control_.run(command);
      reply.kind = Reply::Kind::array;
      reply.elements = connection.pipeline(send.commands);
      for (const Command& command : leave(condition)) control_.run(command);
      if (!send.pipelined) reply = Reply{reply.elements.front()};
    }
    if (happening.act == Act::lost_before || happening.act == Act::lost_after) connection = server_.connect();
    const bool saw = happening.act == Act::step || condition != Condition::normal;
    return saw ? reply : space_.injected(happening.act, own.node);
  }

  void act_on_server(const Happening& happening) {
    const auto restart = [&](const Keyspace& with) {
      server_.kill();
      server_.start_again();
      control_ = server_.connect();
      connect_all();
      control_.run(load_command(with, clock_us_));
    };
    const std::int64_t jump = space_.scope().jump.count();
    switch (happening.act) {
      case Act::tick: set_clock(clock_us_ + space_.scope().tick.count()); break;
      case Act::clock_back: set_clock(clock_us_ - jump); break;
      case Act::clock_forward: set_clock(clock_us_ + jump); break;
      case Act::script_flush: control_.run({"SCRIPT", "FLUSH"}); break;
      case Act::restart_with_data: restart(keys_); break;
      case Act::restart_empty: restart({}); break;
      case Act::failover: restart(stale_); break;
      case Act::evicted: control_.run({"DEL", keys_[static_cast<std::size_t>(happening.key)].name}); break;
      default: assert(false);
    }
  }

  void set_clock(std::int64_t us) {
    clock_us_ = us;
    server_.set_clock(Instant{Micros{us}});
  }
  Keyspace keys() { return parse_dump(control_.run({"WEIR.DUMP"})); }
  void connect_all() {
    connections_.clear();
    for (std::size_t i = 0; i < clients_.size(); ++i) connections_.push_back(server_.connect());
  }

  Space& space_;
  Server& server_;
  Connection control_;
  std::vector<Connection> connections_;
  std::vector<Standing> clients_;
  Keyspace keys_;
  Keyspace stale_;
  std::int64_t clock_us_ = 0;
};

}  // namespace

std::vector<Happening> random_way(Space& space, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::vector<Happening> way;
  for (State state = space.initial();;) {
    auto edges = std::move(space.expand(std::span{&state, 1}).front());
    if (edges.empty()) return way;
    auto& edge = edges[random() % edges.size()];
    way.push_back(edge.label);
    state = std::move(edge.next);
  }
}

Replay replay(Space& space, Server& server, const std::vector<Happening>& way) {
  State state = space.initial();
  Live live{space, server};
  for (const Happening& happening : way) {
    auto edges = std::move(space.expand(std::span{&state, 1}).front());
    const auto edge = std::ranges::find(edges, happening, &Space::Edge::label);
    assert(edge != edges.end());
    state = std::move(edge->next);
    live.act(happening);
  }
  return {way, show(space, state.clients, space.keyspace(state)), live.show()};
}

}  // namespace weir::harness::explore
