#include "proptests/harness/explore_effects.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <set>
#include <utility>

#include "proptests/harness/error.h"
#include "proptests/harness/lua_wire.h"

namespace weir::harness::explore {
namespace {

constexpr std::size_t together_most = 256;  // questions a round trip
constexpr std::size_t scripts_most = 32;

std::string upper(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return word;
}

std::string name_of(const Command& command) {
  return upper(command.front());
}

/// What they leave behind in the server is not among what is restored.
void refuse_what_cannot_be_restored(const Command& command) {
  static const std::set<std::string> refused{
      "BGSAVE",   "BLMOVE",    "BLPOP",    "BRPOP",    "BZPOPMAX", "BZPOPMIN", "CLIENT",    "CONFIG", "DEBUG",
      "FAILOVER", "FCALL",     "FCALL_RO", "FUNCTION", "HELLO",    "MIGRATE",  "MONITOR",   "MOVE",   "PSUBSCRIBE",
      "QUIT",     "REPLICAOF", "RESET",    "SELECT",   "SHUTDOWN", "SLAVEOF",  "SUBSCRIBE", "SWAPDB", "WAIT"};
  if (refused.contains(name_of(command)))
    throw ContractError("the search cannot restore what " + name_of(command) +
                        " leaves behind; judge a client program that sends it with `weir check`");
}

std::string bytes_of(const Send& send) {
  wire::Writer out;
  out.number<std::uint8_t>(send.pipelined);
  for (const Command& command : send.commands) {
    out.number(static_cast<std::uint32_t>(command.size()));
    for (const std::string& word : command) out.text(word);
  }
  return std::string{out.bytes()};
}

void require_ok(const Reply& reply, const Command& command) {
  if (reply.is_error())
    throw EnvironmentError("the server replied " + show(reply) + " to " + command.front() +
                           ", which puts it into a state of the search");
}

/// The session after a step: what MULTI, WATCH and their like made of it.
void follow(Session& session, const Command& command, const Reply& reply) {
  const std::string name = name_of(command);
  if (session.in_multi) {
    if (name == "EXEC" || name == "DISCARD")
      session = {};
    else if (name != "MULTI" && name != "WATCH")
      session.queue.push_back(command);
    return;
  }
  if (reply.is_error()) return;
  if (name == "MULTI") session.in_multi = true;
  if (name == "UNWATCH") session.watched.clear(), session.dirty = false;
  if (name != "WATCH") return;
  for (auto key = command.begin() + 1; key != command.end(); ++key) {
    const auto at = std::ranges::lower_bound(session.watched, *key);
    if (at == session.watched.end() || *at != *key) session.watched.insert(at, *key);
  }
}

}  // namespace

std::vector<Command> enter(Condition condition) {
  switch (condition) {
    case Condition::normal: break;
    case Condition::out_of_memory: return {{"CONFIG", "SET", "maxmemory", "1"}};
    // Of a master that is not there: the server goes on reading, and refuses to write.
    case Condition::read_only: return {{"REPLICAOF", "127.0.0.1", "1"}};
  }
  return {};
}

std::vector<Command> leave(Condition condition) {
  switch (condition) {
    case Condition::normal: break;
    case Condition::out_of_memory: return {{"CONFIG", "SET", "maxmemory", "0"}};
    case Condition::read_only: return {{"REPLICAOF", "NO", "ONE"}};
  }
  return {};
}

Command load_command(const Keyspace& keyspace, std::int64_t clock_us) {
  Command load{"WEIR.LOAD", std::to_string(clock_us)};
  for (const StoredKey& key : keyspace)
    load.insert(load.end(), {key.name, key.is_string ? "1" : "0", key.bytes, std::to_string(key.expiry_ms)});
  return load;
}

Keyspace parse_dump(const Reply& reply) {
  const auto& fields = reply.elements;
  if (reply.kind != Reply::Kind::array || fields.size() % 4 != 0)
    throw EnvironmentError{"WEIR.DUMP answered " + show(reply) + ", not {name, is_string, bytes, expiry, ...}"};
  Keyspace keyspace;
  for (std::size_t i = 0; i < fields.size(); i += 4)
    keyspace.push_back({fields[i].text, fields[i + 1].integer == 1, fields[i + 2].text, fields[i + 3].integer});
  std::ranges::sort(keyspace);
  return keyspace;
}

Effects::Effects(Server& server) : server_(server), control_(server.connect()), actor_(server.connect()) {
  keyspaces.number({});
  sessions.number({});
  observed.number({});
}

int Effects::send(const Send& send) {
  const auto [at, is_new] = send_numbers_.try_emplace(bytes_of(send), static_cast<int>(sends_.size()));
  if (is_new) {
    for (const Command& command : send.commands) {
      refuse_what_cannot_be_restored(command);
      if (name_of(command) == "EVAL" && command.size() > 1) script(command[1]);
      if (name_of(command) == "SCRIPT" && command.size() > 2 && upper(command[1]) == "LOAD") script(command[2]);
    }
    sends_.push_back(send);
  }
  return at->second;
}

int Effects::reply(const Reply& reply) {
  wire::Writer out;
  wire::write(out, reply);
  const auto [at, is_new] = reply_numbers_.try_emplace(std::string{out.bytes()}, static_cast<int>(replies_.size()));
  if (is_new) replies_.push_back(reply);
  return at->second;
}

std::uint32_t Effects::script(const std::string& text) {
  const auto known = std::ranges::find(scripts_, text);
  const auto bit = std::uint32_t{1} << (known - scripts_.begin());
  if (known != scripts_.end()) return bit;
  if (scripts_.size() == scripts_most)
    throw ContractError("the search tells 32 scripts apart at most; this program sends more");
  const Reply loaded = control_.run({"SCRIPT", "LOAD", text});
  if (loaded.is_error()) throw ContractError("Redis cannot compile the script: " + loaded.text);
  scripts_.push_back(text);
  digests_.push_back(loaded.text);
  return bit;
}

std::vector<std::string> Effects::scripts_in(std::uint32_t bits) const {
  std::vector<std::string> texts;
  for (std::size_t script = 0; script < scripts_.size(); ++script)
    if ((bits >> script & 1) != 0) texts.push_back(scripts_[script]);
  return texts;
}

void Effects::ask(std::span<const Question> questions) {
  std::set<Question> fresh;
  for (const Question& question : questions)
    if (!answers_.contains(question)) fresh.insert(question);
  std::vector<Question> together;
  for (const Question& question : fresh) {
    if (leaves_a_session(question)) {
      ask_alone(question);
      continue;
    }
    together.push_back(question);
    if (together.size() == together_most) ask_together(std::exchange(together, {}));
  }
  ask_together(together);
}

bool Effects::leaves_a_session(const Question& question) const {
  if (question.observed != 0 || question.session != 0) return true;
  if (question.send < 0) return false;
  Session session;
  Reply accepted;
  accepted.kind = Reply::Kind::status;
  bool watches = false;
  for (const Command& command : send(question.send).commands) {
    follow(session, command, accepted);
    watches |= !session.watched.empty();
  }
  return watches || session.in_multi;
}

std::vector<Command> Effects::before(const Question& question) const {
  std::vector<Command> commands;
  if (!scripts_.empty()) commands.push_back({"SCRIPT", "FLUSH", "SYNC"});
  for (std::string& text : scripts_in(question.scripts)) commands.push_back({"SCRIPT", "LOAD", std::move(text)});
  commands.push_back(load_command(keyspaces[question.keyspace], question.clock_us));
  return commands;
}

std::vector<Command> Effects::after() const {
  std::vector<Command> commands;
  if (!scripts_.empty()) {
    Command exists{"SCRIPT", "EXISTS"};
    exists.insert(exists.end(), digests_.begin(), digests_.end());
    commands.push_back(std::move(exists));
  }
  commands.push_back({"WEIR.DUMP"});
  return commands;
}

void Effects::ask_together(std::span<const Question> questions) {
  if (questions.empty()) return;
  const auto add = [](std::vector<Command>& all, std::vector<Command> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    return all.size();
  };
  struct Place {
    std::size_t prepared, sent, left, end;
  };
  std::vector<Command> commands;
  std::vector<Place> places;
  for (const Question& question : questions) {
    add(commands, before(question));
    const std::size_t prepared = add(commands, enter(question.condition));
    const std::size_t sent = question.send < 0 ? prepared : add(commands, send(question.send).commands);
    const std::size_t left = add(commands, leave(question.condition));
    places.push_back({prepared, sent, left, add(commands, after())});
  }
  std::vector<Reply> replies = control_.pipeline(commands);
  ++round_trips_;
  std::size_t start = 0;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const auto [prepared, sent, left, end] = places[i];
    for (std::size_t at = start; at < prepared; ++at) require_ok(replies[at], commands[at]);
    for (std::size_t at = sent; at < left; ++at) require_ok(replies[at], commands[at]);
    Reply reply;
    reply.kind = Reply::Kind::array;
    reply.elements.assign(std::make_move_iterator(replies.begin() + static_cast<std::ptrdiff_t>(prepared)),
                          std::make_move_iterator(replies.begin() + static_cast<std::ptrdiff_t>(sent)));
    answers_.emplace(questions[i], read(questions[i], std::move(reply), std::span{replies}.subspan(left, end - left)));
    start = end;
  }
}

void Effects::ask_alone(const Question& question) {
  const auto all_ok = [&](Connection& connection, const std::vector<Command>& commands) {
    const auto replies = connection.pipeline(commands);
    ++round_trips_;
    for (std::size_t i = 0; i < commands.size(); ++i) require_ok(replies[i], commands[i]);
  };
  static const std::vector<Command> is_dirty{{"MULTI"}, {"EXEC"}};
  const auto was_touched = [&](Connection& connection) {
    ++round_trips_;
    return connection.pipeline(is_dirty).back().kind == Reply::Kind::nil;
  };
  const Session& session = sessions[question.session];
  actor_.pipeline(std::vector<Command>{{"DISCARD"}, {"UNWATCH"}});
  Command watch{"WATCH"};
  watch.insert(watch.end(), session.watched.begin(), session.watched.end());
  // Storing the state dirties a watch, so one that is dirty is taken before it (and dirtied for sure: a key
  // that is absent before and after is not written), and a clean one after it.
  if (session.dirty) {
    all_ok(actor_, {watch});
    all_ok(control_, {{"SET", session.watched.front(), "dirty"}, {"DEL", session.watched.front()}});
  }
  all_ok(control_, before(question));
  if (!session.dirty && !session.watched.empty()) all_ok(actor_, {watch});
  if (session.in_multi) {
    all_ok(actor_, {{"MULTI"}});
    actor_.pipeline(session.queue);  // those that were refused are refused again
  }
  const std::vector<std::string>& keys = observed[question.observed];
  for (const std::string& key : keys) all_ok(watcher(key), {{"WATCH", key}});
  all_ok(control_, enter(question.condition));
  Reply reply;
  reply.kind = Reply::Kind::array;
  if (question.send >= 0) reply.elements = actor_.pipeline(send(question.send).commands);
  all_ok(control_, leave(question.condition));
  std::vector<std::string> touched;
  for (const std::string& key : keys)
    if (was_touched(watcher(key))) touched.push_back(key);
  // An observer watched before a WATCH of the step itself, so the connection is asked, where it can be.
  Session now = session;
  for (std::size_t i = 0; i < reply.elements.size(); ++i)
    follow(now, send(question.send).commands[i], reply.elements[i]);
  if (now.watched.empty())
    now.dirty = false;
  else if (!now.in_multi)
    now.dirty = was_touched(actor_);
  actor_.pipeline(std::vector<Command>{{"DISCARD"}, {"UNWATCH"}});
  Effect effect = read(question, std::move(reply), control_.pipeline(after()));
  effect.session = sessions.number(std::move(now));
  effect.touched = std::move(touched);
  answers_.emplace(question, std::move(effect));
}

Effect Effects::read(const Question& question, Reply reply, std::span<const Reply> after) {
  const bool single = question.send >= 0 && !send(question.send).pipelined;
  assert(!single || reply.elements.size() == 1);
  Effect effect{.reply = this->reply(single ? Reply{reply.elements.front()} : reply),
                .keyspace = keyspaces.number(parse_dump(after.back())),
                .session = 0,
                .scripts = 0,
                .touched = {}};
  if (after.size() > 1)
    for (std::size_t script = 0; script < after.front().elements.size(); ++script)
      effect.scripts |= static_cast<std::uint32_t>(after.front().elements[script].integer) << script;
  return effect;
}

Connection& Effects::watcher(const std::string& key) {
  const auto at = watchers_.find(key);
  return at != watchers_.end() ? at->second : watchers_.emplace(key, server_.connect()).first->second;
}

}  // namespace weir::harness::explore
