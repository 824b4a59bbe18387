#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "proptests/harness/connection.h"
#include "proptests/harness/lua_host.h"
#include "proptests/harness/reply.h"
#include "proptests/harness/server.h"
#include "weir/time.h"

namespace weir::harness::explore {

/// One key as WEIR.DUMP tells it and WEIR.LOAD takes it.
struct StoredKey {
  std::string name;
  bool is_string;
  std::string bytes;       // the value of a string, the DUMP payload of anything else
  std::int64_t expiry_ms;  // absolute; -1 none
  auto operator<=>(const StoredKey&) const = default;
};
using Keyspace = std::vector<StoredKey>;  // by name

/// What the server keeps for one connection.
struct Session {
  bool in_multi = false;
  std::vector<Command> queue;        // since MULTI, with those that were refused
  std::vector<std::string> watched;  // by name
  bool dirty = false;                // one of them was modified: EXEC will run nothing
  auto operator<=>(const Session&) const = default;
  [[nodiscard]] bool is_idle() const { return *this == Session{}; }
};

/// What else holds while a step runs.
enum class Condition : std::uint8_t { normal, out_of_memory, read_only };

/// A value that stands for an equal one by a small number, in the order in which they were first met.
template <class Value>
class Numbered {
 public:
  int number(Value value) {
    const auto [at, is_new] = numbers_.try_emplace(std::move(value), static_cast<int>(values_.size()));
    if (is_new) values_.push_back(&at->first);
    return at->second;
  }
  [[nodiscard]] const Value& operator[](int number) const { return *values_.at(static_cast<std::size_t>(number)); }
  [[nodiscard]] int size() const { return static_cast<int>(values_.size()); }

 private:
  std::map<Value, int> numbers_;
  std::vector<const Value*> values_;
};

/// What one step does to a server in one state. The server is a function: that is what makes a search over
/// its states sound, and so each question is put to it once.
struct Question {
  int keyspace = 0;
  std::int64_t clock_us = 0;
  std::uint32_t scripts = 0;  // those that it knows, a bit each
  int session = 0;            // of the connection that acts
  int send = -1;              // what it sends; -1 nothing: what is left of the keys at this instant
  Condition condition = Condition::normal;
  int observed = 0;  // keys that somebody watches
  auto operator<=>(const Question&) const = default;
};

struct Effect {
  int reply;  // an array where they went down a pipeline
  int keyspace;
  int session;
  std::uint32_t scripts;
  std::vector<std::string> touched;  // of the observed keys, those whose watchers are dirty now
};

/// The edges of the search, run on the real server: restores a state, runs a step, looks at all that is there.
/// Most go many to a round trip; where somebody watches a key, one by one, with a connection that watches it too.
///
/// Database 0 only. Not thread safe; the server outlives it and is its alone. Throws ContractError where a
/// program sends what leaves a state behind that cannot be restored (FUNCTION LOAD, SELECT, ...).
class Effects {
 public:
  explicit Effects(Server& server);

  /// 0 is the empty keyspace, the idle session, no observed key.
  Numbered<Keyspace> keyspaces;
  Numbered<Session> sessions;
  Numbered<std::vector<std::string>> observed;

  /// Programs send only what went through here.
  int send(const Send& send);
  [[nodiscard]] const Send& send(int number) const { return sends_[static_cast<std::size_t>(number)]; }
  int reply(const Reply& reply);
  [[nodiscard]] const Reply& reply(int number) const { return replies_[static_cast<std::size_t>(number)]; }

  /// Loads a script into the server and returns its bit. Throws ContractError if Redis cannot compile it.
  std::uint32_t script(const std::string& text);

  [[nodiscard]] bool knows_scripts() const { return !scripts_.empty(); }
  [[nodiscard]] std::vector<std::string> scripts_in(std::uint32_t bits) const;

  /// Puts those questions to the server that are new.
  void ask(std::span<const Question> questions);

  /// Precondition: it was asked.
  [[nodiscard]] const Effect& answer(const Question& question) const { return answers_.at(question); }

  [[nodiscard]] std::size_t asked() const { return answers_.size(); }
  [[nodiscard]] std::size_t round_trips() const { return round_trips_; }

 private:
  struct Asked;
  [[nodiscard]] bool leaves_a_session(const Question& question) const;
  std::vector<Command> before(const Question& question) const;
  std::vector<Command> after() const;
  void ask_together(std::span<const Question> questions);
  void ask_alone(const Question& question);
  Effect read(const Question& question, Reply reply, std::span<const Reply> after);
  Connection& watcher(const std::string& key);

  Server& server_;
  Connection control_;
  Connection actor_;
  std::map<std::string, Connection> watchers_;
  std::vector<std::string> scripts_;  // texts, by bit
  std::vector<std::string> digests_;
  std::map<std::string, int> send_numbers_;
  std::deque<Send> sends_;
  std::map<std::string, int> reply_numbers_;
  std::deque<Reply> replies_;
  std::map<Question, Effect> answers_;
  std::size_t round_trips_ = 0;
};

/// The commands that put the server under a condition, and out of it again.
[[nodiscard]] std::vector<Command> enter(Condition condition);
[[nodiscard]] std::vector<Command> leave(Condition condition);

[[nodiscard]] Command load_command(const Keyspace& keyspace, std::int64_t clock_us);

/// Throws EnvironmentError if it is no answer of WEIR.DUMP.
[[nodiscard]] Keyspace parse_dump(const Reply& reply);

}  // namespace weir::harness::explore
