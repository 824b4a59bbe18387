#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/explore.h"
#include "model/explore_admissions.h"
#include "proptests/harness/explore_effects.h"
#include "proptests/harness/lua_host.h"
#include "proptests/harness/program.h"
#include "weir/time.h"

namespace weir::harness::explore {

/// What is searched: clients that each make so many attempts at the same call, a clock that moves so
/// many times, and so many faults, in every order.
struct Scope {
  int clients = 3;
  int attempts = 2;
  int ticks = 2;
  int faults = 0;
  Micros tick{1'000'000};
  Micros jump{1'000'000};  // of the clock, back or forward, as a fault
  Instant start;
  Call call;  // `client`, `attempt` and `now_us` are set as each attempt begins
  model::Entitlement entitlement{};
  Micros judged_in{1};  // a tick of the entitlement: 1 us, or a window
};

/// One thing that can happen, in the order in which a canonical counterexample prefers them.
enum class Act : std::uint8_t {
  step,  // a client's next round trip
  tick,
  // Faults of one client's step.
  lost_before,    // the command is lost on its way there; the client sees an error
  lost_after,     // it takes effect, and the reply is lost; the client sees an error
  out_of_memory,  // the server refuses to use more
  read_only,      // it is a replica now
  busy,           // a script is running: nothing else does
  dies,           // the client ends here
  // Faults of the server.
  script_flush,
  restart_with_data,
  restart_empty,
  failover,  // to a copy that lacks the last write
  evicted,   // one key
  clock_back,
  clock_forward,
};
inline constexpr int act_count = 15;
[[nodiscard]] const char* name(Act act);
[[nodiscard]] constexpr bool loses_data(Act act) {
  return act == Act::restart_empty || act == Act::failover || act == Act::evicted;
}

struct Happening {
  Act act = Act::step;
  int client = -1;       // of a client's acts, from 0
  int key = -1;          // of an eviction: which of the keyspace
  bool retries = false;  // after the error that the fault came to, the client begins the attempt anew, once
  auto operator<=>(const Happening&) const = default;
};

/// Which promise an edge breaks.
enum Violation : int { none = 0, over_admission, endless_key, error_reply };
[[nodiscard]] const char* name(Violation violation);

/// What is counted of edges. The first `act_count` are the acts.
enum Mark : std::uint8_t { denied = act_count, admitted, emptied, overlapped, expired, refused, excused, mark_count };

/// Where one client stands.
struct Standing {
  int ended = 0;                // attempts
  int node = -1;                // of the attempt under way: its call and the replies it has seen; -1 none
  int session = 0;              // of its connection
  std::int64_t begun = 0;       // of the attempt under way, as State::admissions told it
  std::int64_t begun_bare = 0;  // and State::bare
  bool retried = false;         // the attempt
  bool dead = false;
  auto operator<=>(const Standing&) const = default;
};

struct State {
  std::vector<Standing> clients;
  int keyspace = 0;
  int stale = 0;  // keyspace before the last write, while a fault is left
  std::int64_t clock_us = 0;
  std::uint32_t scripts = 0;
  int ticks = 0;   // left
  int faults = 0;  // left
  model::Admissions admissions;
  std::optional<model::Admissions> bare;  // without what lost data excuses, since the first loss
  Act lost_by = Act::step;                // the last loss
};

/// A step as a person wants to read it.
struct Told {
  std::int64_t clock_us;          // after it
  std::vector<Command> commands;  // of a client's step
  std::optional<Reply> reply;     // what the client saw
  std::string outcome;            // "ADMITTED", "denied", "ERROR ...", or empty
};

/// Thrown by a search under symmetry where a program does something else for another client.
struct IdentityMatters {};

/// The states that client programs and a real server can be in together; what can happen in each.
/// Not thread safe; server and host outlive it.
class Space {
 public:
  using State = explore::State;
  using Label = Happening;
  using Edge = model::explore::Edge<State, Label>;

  /// `symmetric`: like clients stand for each other. Then expand() throws IdentityMatters where it finds
  /// that they are not alike: their client number, or a random one, reaches Redis.
  Space(Server& server, LuaHost& host, const Scope& scope, bool symmetric);

  [[nodiscard]] State initial();
  [[nodiscard]] std::vector<std::vector<Edge>> expand(std::span<const State> states);
  [[nodiscard]] std::string key(const State& state) const;
  [[nodiscard]] State representative(State state) const;
  [[nodiscard]] int mover(const Happening& happening) const;
  [[nodiscard]] static bool before(const Happening& left, const Happening& right);

  [[nodiscard]] Told tell(const State& state, const Happening& happening);

  [[nodiscard]] const Scope& scope() const { return scope_; }
  [[nodiscard]] const Effects& effects() const { return effects_; }
  [[nodiscard]] std::size_t longest_attempt() const { return longest_attempt_; }  // round trips
  [[nodiscard]] std::size_t attempt_alone() const { return attempt_alone_; }
  [[nodiscard]] bool sets_expiries() const { return sets_expiries_; }

  // For a replay: the programs, as the search knows them.
  [[nodiscard]] int begin(int client, int attempt, std::int64_t now_us);
  [[nodiscard]] int after(int node, const Reply& reply);
  [[nodiscard]] const Move& move(int node) const { return nodes_[static_cast<std::size_t>(node)].move; }
  [[nodiscard]] const std::vector<Reply>& replies(int node) const {
    return nodes_[static_cast<std::size_t>(node)].replies;
  }
  [[nodiscard]] const Keyspace& keyspace(const State& state) const { return effects_.keyspaces[state.keyspace]; }
  [[nodiscard]] Reply injected(Act act, int node) const;

 private:
  struct Node {
    Call call;
    std::vector<Reply> replies;
    Move move;
    int send = -1;
  };
  struct Draft;
  int add_node(Call call, std::vector<Reply> replies);
  int child(int node, int reply);
  void run_alone();
  std::vector<Draft> drafts(const State& state);
  void draft_client(const State& state, int client, std::vector<Draft>& drafts);
  void draft_server(const State& state, std::vector<Draft>& drafts);
  void finish(Draft draft, std::vector<Edge>& edges);
  void see(Draft draft, int reply, bool faulted, std::vector<Edge>& edges);
  void move_clock(State& state, std::int64_t to) const;
  void write(State& state, int keyspace) const;
  void touch(State& state, int actor, const std::vector<std::string>& keys);
  void cut_connections(State& state) const;
  void push(Draft draft, std::vector<Edge>& edges);
  [[nodiscard]] Question question(const State& state, int session, int send, Condition condition);
  [[nodiscard]] std::int64_t judged(std::int64_t clock_us) const { return clock_us / scope_.judged_in.count(); }

  Scope scope_;
  bool symmetric_;
  Effects effects_;
  ProgramTree programs_;
  bool is_script_;
  std::uint32_t script_ = 0;
  std::vector<Node> nodes_;
  std::map<std::tuple<int, int, std::int64_t>, int> roots_;  // client (0 where all are alike), attempt, now_us
  std::map<std::pair<int, int>, int> children_;              // node, reply
  std::size_t longest_attempt_ = 0;
  std::size_t attempt_alone_ = 0;
  bool sets_expiries_ = false;
};

}  // namespace weir::harness::explore
