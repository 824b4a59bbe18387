#include "ci/gate/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "proptests/harness/error.h"
#include "weir/stored_bucket.h"

namespace weir::gate {
namespace {

using harness::Command;
using harness::Reply;
using model::History;
using model::Observation;
using model::Scenario;
using model::TimedCall;

/// A limiter answers in microseconds; one that takes this long does not answer.
constexpr std::chrono::milliseconds call_deadline{2'000};

/// Of one attempt of a client program, alone on the server.
constexpr int most_steps = 1'000;

std::string key_of(std::size_t scenario, int tenant) {
  return "s" + std::to_string(scenario) + (tenant == 0 ? "a" : "b");
}

Observation not_answered(Observation::Kind kind, std::string text) {
  Observation seen;
  seen.kind = kind;
  seen.text = std::move(text);
  return seen;
}

}  // namespace

harness::Call harness_call(const Scenario& scenario, const TimedCall& call, Instant now, std::string key) {
  const model::Plan& plan = scenario.plan_of(call);
  return harness::Call{.key = std::move(key),
                       .capacity = plan.capacity.text(),
                       .refill = plan.refill.text(),
                       .period_us = plan.period_us.text(),
                       .cost = call.cost.text(),
                       .now_us = now.time_since_epoch().count(),
                       .client = 1};
}

Runner::Runner(harness::Server& server, harness::LuaHost& host)
    : server_(server), host_(host), connection_(server.connect(call_deadline)) {
  reconnect();
}

void Runner::reconnect() {
  connection_ = server_.connect(call_deadline);
  const harness::Contract& contract = host_.contract();
  if (contract.script_text.empty()) return;
  const Reply loaded = connection_.run({"SCRIPT", "LOAD", contract.script_text});
  if (loaded.is_error()) {
    throw harness::ContractError(contract.script->string() + ": Redis does not take the script: " + loaded.text);
  }
  sha_ = loaded.text;
}

std::vector<History> Runner::run(std::span<const Scenario> scenarios) {
  launch({scenarios.begin(), scenarios.end()});
  return land();
}

std::vector<harness::Call> Runner::calls_of(std::span<const Scenario> scenarios) const {
  std::vector<harness::Call> calls;
  for (std::size_t index = 0; index < scenarios.size(); ++index) {
    const Scenario& scenario = scenarios[index];
    Instant now = scenario.start;
    for (const TimedCall& call : scenario.calls) {
      now += Micros{call.advance_us};
      calls.push_back(harness_call(scenario, call, now, key_of(index, call.tenant)));
    }
  }
  return calls;
}

std::vector<Command> Runner::commands_for(const Sent& sent) const {
  if (!sent.arguments) return {};
  const auto& [keys, args] = *sent.arguments;
  Command take{"EVALSHA", sha_, std::to_string(keys.size())};
  take.insert(take.end(), keys.begin(), keys.end());
  take.insert(take.end(), args.begin(), args.end());
  std::vector<Command> commands;
  commands.reserve(3);
  commands.push_back(harness::clock_command(sent.now));
  commands.push_back(std::move(take));
  commands.push_back(harness::look_command(keys));
  return commands;
}

void Runner::launch(std::vector<Scenario> scenarios) {
  Batch batch{.scenarios = std::move(scenarios), .sent = {}};
  const std::vector<harness::Call> calls = calls_of(batch.scenarios);
  calls_ += calls.size();
  if (!host_.contract().script_text.empty()) {
    auto arguments = host_.arguments(calls);
    for (std::size_t index = 0; index < calls.size(); ++index) {
      Sent& sent = batch.sent.emplace_back();
      sent.now = Instant{Micros{calls[index].now_us}};
      if (auto* made = std::get_if<harness::Arguments>(&arguments[index]))
        sent.arguments = std::move(*made);
      else
        sent.refused = std::get<harness::Refusal>(arguments[index]).message;
    }
    send(batch);
  }
  batches_.push_back(std::move(batch));
}

void Runner::send(Batch& batch) {
  std::vector<Command> commands{{"FLUSHALL"}, harness::look_command({"-"})};
  for (const Sent& sent : batch.sent)
    for (Command& command : commands_for(sent)) commands.push_back(std::move(command));
  batch.commands = commands.size();
  connection_.send(commands);
}

std::vector<History> Runner::land() {
  Batch batch = std::move(batches_.front());
  batches_.pop_front();
  std::vector<History> histories;
  if (host_.contract().script_text.empty()) {
    for (std::size_t index = 0; index < batch.scenarios.size(); ++index)
      histories.push_back(run_program(batch.scenarios[index], index));
    return histories;
  }

  std::vector<Reply> replies;
  try {
    replies = connection_.receive(batch.commands);
  } catch (const harness::NoReply&) {
    return land_slowly(std::move(batch));
  }
  std::vector<Observation> observations;
  observe(observations, batch.sent, std::span{replies}.subspan(2));

  auto next = std::make_move_iterator(observations.begin());
  for (Scenario& scenario : batch.scenarios) {
    const auto end = next + static_cast<std::ptrdiff_t>(scenario.calls.size());
    histories.push_back({std::move(scenario), {next, end}});
    next = end;
  }
  return histories;
}

/// Turns {clock, reply, look} triples into observations; the contract's Lua reads all replies at once.
void Runner::observe(std::vector<Observation>& observations, std::span<const Sent> all,
                     std::span<const Reply> replies) {
  std::vector<Reply> readable;
  std::size_t at = 0;
  for (const Sent& sent : all) {
    if (!sent.arguments) continue;
    if (!replies[at + 1].is_error()) readable.push_back(replies[at + 1]);
    at += 3;
  }
  const auto answers = host_.answers(readable);

  observations.reserve(observations.size() + all.size());
  at = 0;
  std::size_t answer = 0;
  for (const Sent& sent : all) {
    if (!sent.arguments) {
      observations.push_back(not_answered(Observation::Kind::error, sent.refused));
      continue;
    }
    Observation& seen = observations.emplace_back();
    const Reply& reply = replies[at + 1];
    if (reply.is_error()) {
      seen.kind = Observation::Kind::error;
      seen.text = reply.text;
    } else if (const auto* read = std::get_if<harness::Answer>(&answers[answer++])) {
      seen.allowed = read->allowed;
      seen.told_never = read->never;
      seen.retry_after_us = read->retry_after_us;
      seen.remaining = read->remaining;
      seen.reset_after_us = read->reset_after_us;
    } else {
      seen.kind = Observation::Kind::malformed;
      seen.text = harness::show(reply) + ": " + std::get<harness::Refusal>(answers[answer - 1]).message;
    }
    read_keys(seen, harness::parse_look(replies[at + 2]));
    at += 3;
  }
}

void Runner::read_keys(Observation& seen, const harness::Look& look) const {
  seen.writes = look.writes;
  seen.strays = look.strays;
  for (const harness::KeyState& key : look.keys) {
    if (!key.bytes) continue;
    seen.present = true;
    if (key.expiry_ms) {
      seen.first_expiry_ms = std::min(seen.first_expiry_ms.value_or(*key.expiry_ms), *key.expiry_ms);
      seen.last_expiry_ms = std::max(seen.last_expiry_ms.value_or(*key.expiry_ms), *key.expiry_ms);
    } else {
      seen.endless = true;
    }
    if (!host_.contract().has_state) continue;
    if (const auto stored = decode(*key.bytes)) {
      seen.stored = stored->bucket;
      seen.stored_until_ms = stored->until_ms;
    } else {
      seen.unreadable = true;
    }
  }
}

/// A call of the batch did not end. One round trip a call now, to find out which; what comes after it is
/// not tried, for each such call takes a whole deadline. Then the batches behind it go out again.
std::vector<History> Runner::land_slowly(Batch batch) {
  const auto begin_again = [this] {
    server_.recover_from_busy_script();
    reconnect();
    connection_.run(harness::look_command({"-"}));
  };
  begin_again();
  connection_.run({"FLUSHALL"});

  std::vector<History> histories;
  bool found = false;
  const Sent* next = batch.sent.data();
  for (Scenario& scenario : batch.scenarios) {
    const std::span<const Sent> sent{next, scenario.calls.size()};
    next += scenario.calls.size();
    History& history = histories.emplace_back(History{std::move(scenario), {}});
    if (found) continue;
    for (const Sent& call : sent) {
      try {
        observe(history.seen, std::span{&call, 1}, connection_.pipeline(commands_for(call)));
      } catch (const harness::NoReply& no_reply) {
        history.seen.push_back(not_answered(Observation::Kind::no_reply, no_reply.what()));
        begin_again();
        found = true;
        break;
      }
    }
  }
  for (Batch& waiting : batches_) send(waiting);
  return histories;
}

History Runner::run_program(const Scenario& scenario, std::size_t serial) {
  connection_.run({"FLUSHALL"});
  connection_.run(harness::look_command({"-"}));
  History history{scenario, {}};
  Instant now = scenario.start;
  for (const TimedCall& call : scenario.calls) {
    now += Micros{call.advance_us};
    server_.set_clock(now);
    history.seen.push_back(run_attempt(harness_call(scenario, call, now, key_of(serial, call.tenant))));
    if (history.seen.back().kind == Observation::Kind::no_reply) break;
  }
  return history;
}

Observation Runner::run_attempt(const harness::Call& call) {
  Observation seen;
  constexpr int attempt = 0;
  try {
    harness::Move move = host_.begin(attempt, call);
    for (int steps = 0; const auto* send = std::get_if<harness::Send>(&move); ++steps) {
      if (steps == most_steps) {
        host_.forget(attempt);
        return not_answered(Observation::Kind::no_reply,
                            fmt::format("the program took {} steps and had no answer yet", most_steps));
      }
      std::vector<Reply> replies = connection_.pipeline(send->commands);
      Reply all;
      if (send->pipelined) {
        all.kind = Reply::Kind::array;
        all.elements = std::move(replies);
      } else {
        all = std::move(replies.front());
      }
      move = host_.resume(attempt, all);
    }
    host_.forget(attempt);
    if (const auto* answer = std::get_if<harness::Answer>(&move)) {
      seen.allowed = answer->allowed;
      seen.told_never = answer->never;
      seen.retry_after_us = answer->retry_after_us;
      seen.remaining = answer->remaining;
      seen.reset_after_us = answer->reset_after_us;
    } else {
      const auto& refusal = std::get<harness::Refusal>(move);
      seen.kind = refusal.kind == harness::Refusal::Kind::deadline ? Observation::Kind::no_reply
                  : refusal.kind == harness::Refusal::Kind::raised ? Observation::Kind::error
                                                                   : Observation::Kind::malformed;
      seen.text = refusal.message;
    }
  } catch (const harness::NoReply& no_reply) {
    server_.recover_from_busy_script();
    reconnect();
    return not_answered(Observation::Kind::no_reply, no_reply.what());
  }
  look_everywhere(seen);
  return seen;
}

/// A client program declares no keys: whatever is in its database is its own.
void Runner::look_everywhere(Observation& seen) {
  const Reply names = connection_.run({"KEYS", "*"});
  std::vector<std::string> keys{"-"};
  for (const Reply& key : names.elements) keys.push_back(key.text);
  std::sort(keys.begin(), keys.end());
  harness::Look look = harness::parse_look(connection_.run(harness::look_command(keys)));
  look.strays = 0;
  read_keys(seen, look);
  seen.first_expiry_ms = seen.last_expiry_ms;  // keys of earlier windows may go before
}

}  // namespace weir::gate
