#include "proptests/harness/interleaver.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "proptests/harness/error.h"

namespace weir::harness {

std::string show(const Step& step) {
  if (step.slot.is_clock()) return "clock " + show(Schedule{step.slot});
  std::string text = client_name(step.slot.client) + " #" + std::to_string(step.attempt);
  for (std::size_t i = 0; i < step.commands.size(); ++i) text += (i == 0 ? "  " : " | ") + show(step.commands[i]);
  if (!step.commands.empty()) text += " -> " + show(step.reply);
  if (!step.outcome) return text;
  if (const auto* refusal = std::get_if<Refusal>(&*step.outcome)) return text + "  REFUSED " + refusal->message;
  return text + (std::get<Answer>(*step.outcome).allowed ? "  ADMITTED" : "  denied");
}

Schedule schedule_of(const History& history) {
  Schedule schedule;
  for (const Step& step : history.steps) schedule.push_back(step.slot);
  return schedule;
}

std::vector<int> steps_of_each(const History& history, std::size_t clients) {
  std::vector<int> steps(clients);
  for (const Step& step : history.steps)
    if (!step.slot.is_clock()) ++steps.at(static_cast<std::size_t>(step.slot.client));
  return steps;
}

/// Where each client stands in a run.
class Interleaver::Run {
 public:
  Run(Interleaver& owner, std::span<const Client> clients)
      : owner_(owner), clients_(clients), progress_(clients.size()), left_(clients.size()) {
    for (const Client& client : clients)
      if (client.calls.empty()) --left_;
  }

  [[nodiscard]] bool is_complete() const noexcept { return left_ == 0; }
  [[nodiscard]] bool has_ended(std::size_t client) const {
    return progress_[client].ended == clients_[client].calls.size();
  }

  void tick(Slot slot) {
    owner_.server_.set_clock(owner_.server_.clock() + slot.tick);
    Step step;
    step.slot = slot;
    step.clock = owner_.server_.clock();
    history_.steps.push_back(std::move(step));
  }

  void step(std::size_t client) {
    assert(!has_ended(client));
    Progress& at = progress_[client];
    Step step;
    step.slot = Slot::of(static_cast<int>(client));
    step.clock = owner_.server_.clock();
    step.attempt = static_cast<int>(at.ended) + 1;
    if (!at.call) {
      at.call = clients_[client].calls[at.ended];
      at.call->client = static_cast<int>(client) + 1;
      at.call->attempt = step.attempt;
      at.call->now_us = (step.clock + clients_[client].skew).time_since_epoch().count();
      at.next = owner_.programs_.move(*at.call, {});
    }
    step.call = *at.call;
    if (auto* send = std::get_if<Send>(&at.next)) {
      step.reply = exchange(owner_.connections_[client], *send);
      step.commands = std::move(send->commands);
      at.replies.push_back(step.reply);
      at.next = owner_.programs_.move(*at.call, at.replies);
    }
    if (!std::holds_alternative<Send>(at.next)) {
      if (const auto* answer = std::get_if<Answer>(&at.next))
        step.outcome = *answer;
      else
        step.outcome = std::get<Refusal>(at.next);
      at = Progress{.ended = at.ended + 1, .call = {}, .replies = {}, .next = {}};
      if (has_ended(client)) --left_;
    }
    history_.steps.push_back(std::move(step));
  }

  History history() && {
    history_.complete = is_complete();
    return std::move(history_);
  }

 private:
  static Reply exchange(Connection& connection, const Send& send) {
    if (!send.pipelined) return connection.run(send.commands.front());
    Reply reply;
    reply.kind = Reply::Kind::array;
    reply.elements = connection.pipeline(send.commands);
    return reply;
  }

  struct Progress {
    std::size_t ended = 0;     // attempts
    std::optional<Call> call;  // of the one that has begun
    std::vector<Reply> replies;
    Move next;
  };

  Interleaver& owner_;
  std::span<const Client> clients_;
  std::vector<Progress> progress_;
  std::size_t left_;  // clients with something to do
  History history_;
};

Interleaver::Interleaver(Server& server, LuaHost& host) : server_(server), programs_(host) {}

History Interleaver::run(std::span<const Client> clients, const Schedule& schedule, Instant start) {
  return on_fresh_server(clients, start, [&](Run& run) {
    for (const Slot slot : schedule) {
      if (run.is_complete()) break;
      if (slot.is_clock()) {
        run.tick(slot);
        continue;
      }
      const auto client = static_cast<std::size_t>(slot.client);
      assert(client < clients.size());
      if (!run.has_ended(client)) run.step(client);
    }
  });
}

History Interleaver::run_in_turn(std::span<const Client> clients, Instant start, int steps_most) {
  return on_fresh_server(clients, start, [&](Run& run) {
    int left = steps_most;
    for (std::size_t client = 0; client < clients.size(); ++client)
      while (!run.has_ended(client) && left-- > 0) run.step(client);
  });
}

template <class Body>
History Interleaver::on_fresh_server(std::span<const Client> clients, Instant start, Body&& body) try {
  make_fresh(clients.size(), start);
  Run run{*this, clients};
  body(run);
  return std::move(run).history();
} catch (const NoReply&) {
  connections_.clear();
  throw;
}

/// An empty server, and connections in no transaction and with no key watched: a run that ended in the
/// middle leaves both.
void Interleaver::make_fresh(std::size_t clients, Instant start) {
  static const std::array<Command, 2> idle{Command{"DISCARD"}, Command{"UNWATCH"}};
  while (connections_.size() < std::max<std::size_t>(clients, 1)) connections_.push_back(server_.connect());
  server_.set_clock(start);
  for (std::size_t i = 0; i < clients; ++i) connections_[i].send(idle);
  for (std::size_t i = 0; i < clients; ++i) connections_[i].receive(idle.size());
  connections_.front().run({"FLUSHALL"});
}

}  // namespace weir::harness
