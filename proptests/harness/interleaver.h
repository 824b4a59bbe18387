#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "proptests/harness/connection.h"
#include "proptests/harness/lua_host.h"
#include "proptests/harness/program.h"
#include "proptests/harness/schedule.h"
#include "proptests/harness/server.h"
#include "weir/time.h"

namespace weir::harness {

/// One client of a run: its calls in order, each begun when the one before it has ended.
struct Client {
  std::vector<Call> calls;  // `client`, `attempt` and `now_us` are set as the run begins each
  Micros skew{0};           // its own clock less the server's
};

/// What one slot of a schedule came to: a round trip of one client, or a step of the clock.
struct Step {
  Slot slot;
  Instant clock;                                         // of the server, when it ran the commands; of a tick: after it
  int attempt = 0;                                       // 1, 2, ... of that client; 0 of a tick
  Call call;                                             // of the attempt, as the client made it
  std::vector<Command> commands;                         // none where an attempt ends without a word to Redis
  Reply reply;                                           // an array where they went down a pipeline
  std::optional<std::variant<Answer, Refusal>> outcome;  // where the attempt ended with this step
};

struct History {
  std::vector<Step> steps;
  bool complete = true;  // every attempt of every client has ended
};

/// One line for people: `A #1  GET k -> nil  ADMITTED`.
[[nodiscard]] std::string show(const Step& step);

/// The slots that were not skipped.
[[nodiscard]] Schedule schedule_of(const History& history);

/// Round trips that each of `clients` took: what `uniform_schedule` wants to know.
[[nodiscard]] std::vector<int> steps_of_each(const History& history, std::size_t clients);

/// Runs client programs on a real server in an order that is given, one step at a time, each client on
/// a connection of its own. One step is what a client does from one reply to the next: its Lua up to
/// the next redis.call (or its end), and one round trip.
///
/// Not thread safe. Server and host outlive it. Throws NoReply when the server does not answer (a script
/// that loops for ever, a killed server); what follows runs on new connections.
class Interleaver {
 public:
  Interleaver(Server& server, LuaHost& host);

  /// On an empty server whose clock shows `start`. Ends with the schedule, or with the last attempt.
  /// Precondition: the schedule names no client that is not there.
  [[nodiscard]] History run(std::span<const Client> clients, const Schedule& schedule, Instant start);

  /// One client after the other, each to its end: what they do when nobody interferes. Stops, and is not
  /// complete, after `steps_most`: a program that waits for the clock would never end.
  [[nodiscard]] History run_in_turn(std::span<const Client> clients, Instant start, int steps_most = 10'000);

 private:
  class Run;
  template <class Body>
  History on_fresh_server(std::span<const Client> clients, Instant start, Body&& body);
  void make_fresh(std::size_t clients, Instant start);

  Server& server_;
  ProgramTree programs_;
  std::vector<Connection> connections_;
};

}  // namespace weir::harness
