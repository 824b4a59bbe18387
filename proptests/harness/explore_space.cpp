#include "proptests/harness/explore_space.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "proptests/harness/error.h"

namespace weir::harness::explore {
namespace {

constexpr std::size_t attempt_most = 1'000;  // round trips: then it waits for something that never comes

const Reply& answered_by_error(const char* text) {
  static std::map<std::string, Reply> replies;
  Reply& reply = replies[text];
  reply.kind = Reply::Kind::error;
  reply.text = text;
  return reply;
}

/// Numbers close together: seven bits a byte, the sign folded in.
void append(std::string& bytes, std::int64_t number) {
  auto rest = (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63);
  for (; rest >= 0x80; rest >>= 7) bytes.push_back(static_cast<char>(rest | 0x80));
  bytes.push_back(static_cast<char>(rest));
}

bool has_endless_key(const Keyspace& keyspace) {
  return std::ranges::any_of(keyspace, [](const StoredKey& key) { return key.expiry_ms < 0; });
}

}  // namespace

const char* name(Act act) {
  static constexpr std::array<const char*, act_count> names{"step",
                                                            "tick",
                                                            "reply lost before the effect",
                                                            "reply lost after the effect",
                                                            "out of memory",
                                                            "read only",
                                                            "busy",
                                                            "client dies",
                                                            "script flush",
                                                            "restart with data",
                                                            "restart empty",
                                                            "failover to a stale copy",
                                                            "key evicted",
                                                            "clock back",
                                                            "clock forward"};
  return names[static_cast<std::size_t>(act)];
}

const char* name(Violation violation) {
  static constexpr std::array<const char*, 4> names{"", "over-admission", "endless-key", "error-reply"};
  return names[static_cast<std::size_t>(violation)];
}

/// A step under way: the state it leads to as far as it is known, and what the server has yet to say.
struct Space::Draft {
  Happening label;
  State next;
  Question asked;
  bool asks = false;
  std::uint32_t marks = 0;
  int violation = none;
};

Space::Space(Server& server, LuaHost& host, const Scope& scope, bool symmetric)
    : scope_(scope),
      symmetric_(symmetric && scope.clients > 1),
      effects_(server),
      programs_(host),
      is_script_(!host.contract().script_text.empty()) {
  if (is_script_) script_ = effects_.script(host.contract().script_text);
  run_alone();
}

/// One attempt on an empty server: how long it is, and whether its keys expire.
void Space::run_alone() {
  State state = initial();
  for (;;) {
    std::vector<Draft> own;
    draft_client(state, 0, own);
    assert(!own.empty());
    if (own.front().asks) effects_.ask(std::array{own.front().asked});
    std::vector<Edge> edges;
    finish(std::move(own.front()), edges);
    ++attempt_alone_;
    state = std::move(edges.front().next);
    if (state.clients.front().ended > 0) break;
  }
  sets_expiries_ = !keyspace(state).empty() && !has_endless_key(keyspace(state));
}

State Space::initial() {
  const std::int64_t now = scope_.start.time_since_epoch().count();
  return State{.clients = std::vector<Standing>(static_cast<std::size_t>(scope_.clients)),
               .keyspace = 0,
               .stale = 0,
               .clock_us = now,
               .scripts = script_,
               .ticks = scope_.ticks,
               .faults = scope_.faults,
               .admissions = model::Admissions(scope_.entitlement, judged(now)),
               .bare = std::nullopt};
}

State Space::representative(State state) const {
  if (symmetric_) std::ranges::sort(state.clients);
  return state;
}

std::string Space::key(const State& state) const {
  std::string bytes;
  for (const Standing& client : state.clients) {
    append(bytes, client.ended);
    append(bytes, client.node);
    append(bytes, client.session);
    append(bytes, client.retried * 2 + client.dead);
    if (client.node >= 0) append(bytes, state.admissions.place(client.begun));
  }
  append(bytes, state.keyspace);
  append(bytes, state.stale);
  append(bytes, state.clock_us - scope_.start.time_since_epoch().count());
  append(bytes, state.scripts);
  append(bytes, state.ticks);
  append(bytes, state.faults);
  append(bytes, static_cast<int>(state.lost_by));
  std::vector<std::int64_t> numbers;
  state.admissions.append_to(numbers);
  if (state.bare) state.bare->append_to(numbers);
  for (const std::int64_t number : numbers) append(bytes, number);
  return bytes;
}

int Space::mover(const Happening& happening) const {
  if (happening.client >= 0) return happening.client;
  return happening.act == Act::tick ? scope_.clients : scope_.clients + 1;
}

/// Ordinary steps first, by client; then the clock; then faults.
bool Space::before(const Happening& left, const Happening& right) {
  return left < right;
}

std::vector<std::vector<Space::Edge>> Space::expand(std::span<const State> states) {
  std::vector<std::vector<Draft>> all;
  all.reserve(states.size());
  std::vector<Question> questions;
  for (const State& state : states) {
    all.push_back(drafts(state));
    for (const Draft& draft : all.back())
      if (draft.asks) questions.push_back(draft.asked);
  }
  effects_.ask(questions);
  std::vector<std::vector<Edge>> expanded(states.size());
  for (std::size_t i = 0; i < states.size(); ++i)
    for (Draft& draft : all[i]) finish(std::move(draft), expanded[i]);
  return expanded;
}

std::vector<Space::Draft> Space::drafts(const State& state) {
  std::vector<Draft> all;
  for (int client = 0; client < scope_.clients; ++client) draft_client(state, client, all);
  if (state.ticks > 0) {
    Draft draft{.label = {Act::tick}, .next = state, .asked = {}};
    --draft.next.ticks;
    move_clock(draft.next, state.clock_us + scope_.tick.count());
    draft.asked = question(draft.next, 0, -1, Condition::normal);
    draft.asks = true;
    all.push_back(std::move(draft));
  }
  if (state.faults > 0) draft_server(state, all);
  return all;
}

void Space::draft_client(const State& state, int client, std::vector<Draft>& all) {
  const Standing& standing = state.clients[static_cast<std::size_t>(client)];
  if (standing.dead || standing.ended == scope_.attempts) return;
  Draft draft{.label = {Act::step, client}, .next = state, .asked = {}};
  Standing& own = draft.next.clients[static_cast<std::size_t>(client)];
  if (own.node < 0) {
    own.node = begin(client, own.ended + 1, state.clock_us);
    own.begun = draft.next.admissions.begin();
    if (draft.next.bare) own.begun_bare = draft.next.bare->begin();
  }
  const int send = nodes_[static_cast<std::size_t>(own.node)].send;
  if (send >= 0) {
    draft.asked = question(state, own.session, send, Condition::normal);
    draft.asks = true;
  }
  all.push_back(draft);
  if (state.faults == 0) return;

  --draft.next.faults;
  const auto fault = [&](Act act, Condition condition) {
    Draft faulted = draft;
    faulted.label.act = act;
    faulted.asks = act == Act::lost_after || condition != Condition::normal;
    faulted.asked.condition = condition;
    all.push_back(std::move(faulted));
  };
  fault(Act::dies, Condition::normal);
  if (send < 0) return;
  fault(Act::lost_before, Condition::normal);
  fault(Act::lost_after, Condition::normal);
  if (!effects_.sessions[own.session].in_multi) {
    fault(Act::out_of_memory, Condition::out_of_memory);
    fault(Act::read_only, Condition::read_only);
    fault(Act::busy, Condition::normal);
  }
}

void Space::draft_server(const State& state, std::vector<Draft>& all) {
  const auto fault = [&](Act act, auto&& change) {
    Draft draft{.label = {act}, .next = state, .asked = {}};
    --draft.next.faults;
    change(draft);
    all.push_back(std::move(draft));
  };
  const bool connected = std::ranges::any_of(state.clients, [](const Standing& client) { return client.session != 0; });
  const auto restarted = [&](Draft& draft) {
    draft.next.scripts = 0;
    cut_connections(draft.next);
  };
  const auto lost = [&](Draft& draft) {
    if (!draft.next.bare) {
      draft.next.bare = draft.next.admissions;
      for (Standing& client : draft.next.clients) client.begun_bare = client.begun;
    }
    draft.next.admissions.lose();
    draft.next.lost_by = draft.label.act;
  };
  if (state.scripts != 0) fault(Act::script_flush, [&](Draft& draft) { draft.next.scripts = 0; });
  if (state.scripts != 0 || connected) fault(Act::restart_with_data, restarted);
  if (state.keyspace != 0) {
    fault(Act::restart_empty, [&](Draft& draft) {
      restarted(draft);
      draft.next.keyspace = 0;
      lost(draft);
    });
  }
  if (state.stale != state.keyspace) {
    fault(Act::failover, [&](Draft& draft) {
      restarted(draft);
      draft.next.keyspace = state.stale;
      lost(draft);
      draft.asked = question(draft.next, 0, -1, Condition::normal);  // what of it has expired since
      draft.asks = true;
    });
  }
  const Keyspace& keyspace = effects_.keyspaces[state.keyspace];
  for (int key = 0; key < static_cast<int>(keyspace.size()); ++key) {
    fault(Act::evicted, [&](Draft& draft) {
      draft.label.key = key;
      Keyspace left = keyspace;
      left.erase(left.begin() + key);
      touch(draft.next, -1, {keyspace[static_cast<std::size_t>(key)].name});
      draft.next.keyspace = effects_.keyspaces.number(std::move(left));
      lost(draft);
    });
  }
  for (const Act act : {Act::clock_back, Act::clock_forward}) {
    fault(act, [&](Draft& draft) {
      const std::int64_t jump = scope_.jump.count();
      move_clock(draft.next, state.clock_us + (act == Act::clock_back ? -jump : jump));
      draft.asked = question(draft.next, 0, -1, Condition::normal);
      draft.asks = true;
    });
  }
}

void Space::finish(Draft draft, std::vector<Edge>& edges) {
  const Act act = draft.label.act;
  State& next = draft.next;
  const Effect* const effect = draft.asks ? &effects_.answer(draft.asked) : nullptr;
  if (draft.label.client < 0) {
    if (effect != nullptr && effect->keyspace != next.keyspace) {
      if (act == Act::tick || act == Act::clock_forward) draft.marks |= 1U << Mark::expired;
      std::vector<std::string> gone;
      for (const StoredKey& key : effects_.keyspaces[next.keyspace])
        if (!std::ranges::binary_search(effects_.keyspaces[effect->keyspace], key)) gone.push_back(key.name);
      touch(next, -1, gone);
      next.keyspace = effect->keyspace;
    }
    push(std::move(draft), edges);
    return;
  }
  Standing& own = next.clients[static_cast<std::size_t>(draft.label.client)];
  if (act == Act::dies) {
    next.admissions.end(own.begun, 0);
    if (next.bare) next.bare->end(own.begun_bare, 0);
    own = Standing{.ended = own.ended, .dead = true};
    push(std::move(draft), edges);
    return;
  }
  if (act == Act::out_of_memory || act == Act::read_only) {
    // One that changes nothing has not fired. (The step itself stands before it, and was asked.)
    Question usual = draft.asked;
    usual.condition = Condition::normal;
    const Effect& healthy = effects_.answer(usual);
    if (healthy.reply == effect->reply && healthy.keyspace == effect->keyspace) return;
  }
  if (effect != nullptr) {
    write(next, effect->keyspace);
    next.scripts = effect->scripts;
    own.session = effect->session;
    touch(next, draft.label.client, effect->touched);
  }
  if (act == Act::lost_before || act == Act::lost_after) own.session = 0;  // it connects anew
  int reply = effect != nullptr ? effect->reply : -1;
  if (act == Act::lost_before || act == Act::lost_after || act == Act::busy)
    reply = effects_.reply(injected(act, own.node));
  see(std::move(draft), reply, act != Act::step, edges);
}

/// The client sees the reply (-1: it needed none), and moves on to its next round trip or to its end.
void Space::see(Draft draft, int reply, bool faulted, std::vector<Edge>& edges) {
  State& next = draft.next;
  const auto client = static_cast<std::size_t>(draft.label.client);
  if (reply >= 0) next.clients[client].node = child(next.clients[client].node, reply);
  Standing& own = next.clients[client];
  const Move& move = nodes_[static_cast<std::size_t>(own.node)].move;
  if (std::holds_alternative<Send>(move)) {
    if (std::ranges::count_if(next.clients, [](const Standing& each) { return each.node >= 0; }) > 1)
      draft.marks |= 1U << Mark::overlapped;
    push(std::move(draft), edges);
    return;
  }
  const auto* answer = std::get_if<Answer>(&move);
  const bool allowed = answer != nullptr && answer->allowed;
  const std::int64_t tokens = allowed ? std::stoll(scope_.call.cost) : 0;
  const bool over = next.admissions.end(own.begun, tokens);
  const bool over_bare = next.bare && next.bare->end(own.begun_bare, tokens);
  if (over) draft.violation = over_admission;
  if (over_bare && !over) draft.marks |= 1U << Mark::excused;
  if (answer == nullptr && next.faults == scope_.faults) draft.violation = error_reply;
  draft.marks |= 1U << (answer == nullptr ? Mark::refused : allowed ? Mark::admitted : Mark::denied);
  if (next.admissions.level() == scope_.entitlement.capacity) draft.marks |= 1U << Mark::emptied;
  own = Standing{.ended = own.ended, .node = -1, .session = own.session, .retried = own.retried};
  if (answer == nullptr && faulted && is_script_ && !own.retried) {
    Draft again = draft;
    again.label.retries = true;
    again.next.clients[client].retried = true;
    push(std::move(again), edges);
  }
  ++own.ended;
  own.retried = false;
  push(std::move(draft), edges);
}

void Space::push(Draft draft, std::vector<Edge>& edges) {
  draft.marks |= 1U << static_cast<int>(draft.label.act);
  if (draft.next.faults == 0) draft.next.stale = 0;
  const bool quiet = std::ranges::none_of(draft.next.clients, [](const Standing& client) { return client.node >= 0; });
  if (draft.violation == none && sets_expiries_ && quiet && has_endless_key(effects_.keyspaces[draft.next.keyspace]))
    draft.violation = endless_key;
  edges.push_back({draft.label, std::move(draft.next), draft.violation, draft.marks});
}

void Space::move_clock(State& state, std::int64_t to) const {
  state.clock_us = to;
  state.admissions.clock(judged(to));
  if (state.bare) state.bare->clock(judged(to));
}

void Space::write(State& state, int keyspace) const {
  if (keyspace == state.keyspace) return;
  if (scope_.faults > 0) state.stale = state.keyspace;
  state.keyspace = keyspace;
}

/// Dirties whoever watches one of the keys, but for the one who acts: its session says that already.
void Space::touch(State& state, int actor, const std::vector<std::string>& keys) {
  if (keys.empty()) return;
  for (int client = 0; client < scope_.clients; ++client) {
    int& session = state.clients[static_cast<std::size_t>(client)].session;
    if (client == actor || session == 0) continue;
    Session changed = effects_.sessions[session];
    changed.dirty |= std::ranges::any_of(
        keys, [&](const std::string& key) { return std::ranges::binary_search(changed.watched, key); });
    session = effects_.sessions.number(std::move(changed));
  }
}

void Space::cut_connections(State& state) const {
  for (Standing& client : state.clients) client.session = 0;
}

Question Space::question(const State& state, int session, int send, Condition condition) {
  Question question{.keyspace = state.keyspace,
                    .clock_us = state.clock_us,
                    .scripts = state.scripts,
                    .session = session,
                    .send = send,
                    .condition = condition};
  if (send < 0) return question;
  std::vector<std::string> keys;
  for (const Standing& client : state.clients)
    if (client.session != 0)
      for (const std::string& key : effects_.sessions[client.session].watched) keys.push_back(key);
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  question.observed = effects_.observed.number(std::move(keys));
  return question;
}

int Space::begin(int client, int attempt, std::int64_t now_us) {
  const int who = symmetric_ ? 0 : client;
  const auto [at, is_new] = roots_.try_emplace(std::tuple{who, attempt, now_us}, -1);
  if (!is_new) return at->second;
  Call call = scope_.call;
  call.client = who + 1;
  call.attempt = attempt;
  call.now_us = now_us;
  return at->second = add_node(std::move(call), {});
}

int Space::after(int node, const Reply& reply) {
  return child(node, effects_.reply(reply));
}

int Space::child(int node, int reply) {
  if (const auto known = children_.find({node, reply}); known != children_.end()) return known->second;
  const Node& parent = nodes_[static_cast<std::size_t>(node)];
  std::vector<Reply> replies = parent.replies;
  replies.push_back(effects_.reply(reply));
  if (replies.size() > attempt_most)
    throw ContractError("an attempt went on past 1,000 round trips: what it waits for never comes in this scope");
  const int added = add_node(parent.call, std::move(replies));
  children_.emplace(std::pair{node, reply}, added);
  return added;
}

int Space::add_node(Call call, std::vector<Reply> replies) {
  Move move = programs_.move(call, replies);
  if (symmetric_) {
    Call other = call;
    for (other.client = 2; other.client <= scope_.clients; ++other.client)
      if (programs_.move(other, replies) != move) throw IdentityMatters{};
  }
  const auto* send = std::get_if<Send>(&move);
  const int number = send == nullptr ? -1 : effects_.send(*send);
  longest_attempt_ = std::max(longest_attempt_, replies.size());
  nodes_.push_back({std::move(call), std::move(replies), std::move(move), number});
  return static_cast<int>(nodes_.size()) - 1;
}

/// What the client sees of a fault that the server does not know of.
Reply Space::injected(Act act, int node) const {
  if (act != Act::busy) return answered_by_error("IOERR the connection was lost before the reply came");
  const Reply& busy =
      answered_by_error("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.");
  const auto& send = std::get<Send>(move(node));
  if (!send.pipelined) return busy;
  Reply each;
  each.kind = Reply::Kind::array;
  each.elements.assign(send.commands.size(), busy);
  return each;
}

Told Space::tell(const State& state, const Happening& happening) {
  std::vector<Edge> edges;
  Told told{.clock_us = state.clock_us, .commands = {}, .reply = {}, .outcome = {}};
  for (Draft& draft : drafts(state)) {
    if (draft.label.act != happening.act || draft.label.client != happening.client) continue;
    told.clock_us = draft.next.clock_us;
    if (draft.label.client < 0 || happening.act == Act::dies) return told;
    if (draft.asks) {
      Question usual = draft.asked;
      usual.condition = Condition::normal;
      effects_.ask(std::array{draft.asked, usual});
    }
    const int node = draft.next.clients[static_cast<std::size_t>(happening.client)].node;
    int reply = draft.asks ? effects_.answer(draft.asked).reply : -1;
    if (const auto* send = std::get_if<Send>(&move(node))) told.commands = send->commands;
    if (happening.act == Act::lost_before || happening.act == Act::lost_after || happening.act == Act::busy)
      reply = effects_.reply(injected(happening.act, node));
    if (reply >= 0) told.reply = effects_.reply(reply);
    const Move& then = move(reply >= 0 ? child(node, reply) : node);
    if (const auto* answer = std::get_if<Answer>(&then))
      told.outcome = answer->allowed ? "ADMITTED" : "denied";
    else if (const auto* refusal = std::get_if<Refusal>(&then))
      told.outcome = (happening.retries ? "unknown, tries again: " : "ERROR ") + refusal->message;
    return told;
  }
  assert(false);
  return told;
}

}  // namespace weir::harness::explore
