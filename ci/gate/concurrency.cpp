#include "ci/gate/concurrency.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <exception>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace weir::gate {
namespace {

using harness::Answer;
using harness::Schedule;
using harness::Slot;

struct Size {
  int clients;
  int attempts;
};
constexpr Size sizes[]{{2, 1}, {3, 1}, {2, 2}, {3, 2}, {4, 2}};
constexpr std::size_t most_enumerated = 2'000;  // interleavings of one size that are all run
constexpr std::size_t random_runs = 300;        // of a size with more than that

std::vector<harness::Client> clients_of(const Interleaving& interleaving) {
  const harness::Call call{.key = "a",
                           .capacity = interleaving.plan.capacity.text(),
                           .refill = interleaving.plan.refill.text(),
                           .period_us = interleaving.plan.period_us.text(),
                           .cost = "1"};
  harness::Client client;
  client.calls.assign(static_cast<std::size_t>(interleaving.attempts), call);
  return std::vector<harness::Client>(static_cast<std::size_t>(interleaving.clients), client);
}

/// How many orders there are of so many steps of each; stops counting at `most`.
std::size_t orders(const std::vector<int>& steps, std::size_t most) {
  std::size_t count = 1;
  int placed = 0;
  for (const int of_one : steps) {
    for (int step = 1; step <= of_one; ++step) {
      ++placed;
      count = count * static_cast<std::size_t>(placed) / static_cast<std::size_t>(step);
      if (count > most) return most + 1;
    }
  }
  return count;
}

int switches(const Schedule& schedule) {
  int count = 0;
  for (std::size_t slot = 1; slot < schedule.size(); ++slot) count += schedule[slot] == schedule[slot - 1] ? 0 : 1;
  return count;
}

/// Fewer steps, fewer changes of client, then the order of names.
bool smaller(const Schedule& left, const Schedule& right) {
  const auto key = [](const Schedule& schedule) {
    std::vector<int> names;
    for (const Slot& slot : schedule) names.push_back(slot.client);
    return std::tuple{schedule.size(), switches(schedule), names};
  };
  return key(left) < key(right);
}

class Search {
 public:
  Search(harness::Server& server, harness::LuaHost& host, const Domain& domain, std::uint64_t seed,
         const std::function<void(std::uint64_t)>& between)
      : server_(server), host_(host), interleaver_(server, host), domain_(domain), seed_(seed), between_(between) {}

  ConcurrencyResult run() {
    for (const Size& size : sizes) {
      look_at(size);
      if (result_.failing) break;
    }
    if (!result_.failing && !host_.contract().script_text.empty()) run_free();
    return std::move(result_);
  }

 private:
  void look_at(const Size& size) {
    const int calls = size.clients * size.attempts;
    Interleaving base{.start = usual_start - usual_start.time_since_epoch() % domain_.tick,
                      .plan = {std::clamp<std::int64_t>(calls - 1, domain_.capacity.least, domain_.capacity.most),
                               domain_.refill.least,
                               std::clamp<std::int64_t>(1'000'000, domain_.period_us.least, domain_.period_us.most)},
                      .clients = size.clients,
                      .attempts = size.attempts,
                      .schedule = {}};
    for (const std::int64_t capacity : {std::int64_t{1}, std::int64_t{calls - 1}}) {
      base.plan.capacity = std::clamp(capacity, domain_.capacity.least, domain_.capacity.most);
      if (base.plan.capacity.whole >= calls || !base.plan.limit()) continue;
      with_limit(base);
      if (result_.failing || calls == 2) return;
    }
  }

  void with_limit(const Interleaving& base) {
    const std::vector<harness::Client> clients = clients_of(base);
    const auto alone = interleaver_.run_in_turn(clients, base.start, 1'000);
    const std::vector<int> steps(static_cast<std::size_t>(base.clients),
                                 std::ranges::max(harness::steps_of_each(alone, clients.size())));
    const bool all = orders(steps, most_enumerated) <= most_enumerated;
    std::set<std::vector<int>> seen;
    const auto try_one = [&](Schedule schedule) {
      between_(result_.interleavings);
      Interleaving candidate = base;
      candidate.schedule = std::move(schedule);
      InterleavingRun run = run_interleaving(interleaver_, candidate);
      ++result_.interleavings;
      result_.decisions += static_cast<std::uint64_t>(base.clients * base.attempts);
      if (!run.failure) return;
      candidate.schedule = harness::schedule_of(run.history);
      if (!result_.failing || smaller(candidate.schedule, result_.failing->schedule)) result_.failing = candidate;
      result_.certified = all && result_.random_of.empty();
    };
    if (all) {
      Schedule schedule;
      for (int client = 0; client < base.clients; ++client)
        schedule.insert(schedule.end(), static_cast<std::size_t>(steps[static_cast<std::size_t>(client)]),
                        Slot::of(client));
      const auto by_client = [](const Slot& left, const Slot& right) { return left.client < right.client; };
      do try_one(schedule);
      while (std::next_permutation(schedule.begin(), schedule.end(), by_client));
    } else {
      for (std::size_t run = 0; run < random_runs && !result_.failing; ++run)
        try_one(harness::uniform_schedule(steps, {}, seed_ + run));
    }
    std::string& sizes_run = all ? result_.all_of : result_.random_of;
    const std::string size = fmt::format("{}x{}", base.clients, base.attempts);
    if (sizes_run.ends_with(size)) return;
    sizes_run += (sizes_run.empty() ? "" : ", ") + size;
  }

  /// Real threads, each on a connection of its own, let go at once; the clock is held, so what is
  /// right is exact.
  void run_free() {
    constexpr int threads = 16;
    constexpr int takes_each = 64;
    const std::int64_t capacity = std::clamp<std::int64_t>(100, domain_.capacity.least, domain_.capacity.most);
    model::Plan plan{capacity, domain_.refill.least,
                     std::clamp<std::int64_t>(1'000'000, domain_.period_us.least, domain_.period_us.most)};
    if (!plan.limit() || capacity >= threads * takes_each) return;
    harness::Call call{.key = "free",
                       .capacity = plan.capacity.text(),
                       .refill = plan.refill.text(),
                       .period_us = plan.period_us.text(),
                       .cost = "1"};
    call.now_us = usual_start.time_since_epoch().count();
    const auto made = host_.arguments(std::span{&call, 1});
    const auto* arguments = std::get_if<harness::Arguments>(&made.front());
    if (arguments == nullptr) return;

    harness::Connection connection = server_.connect();
    connection.run({"FLUSHALL"});
    server_.set_clock(usual_start);
    const std::string sha = connection.run({"SCRIPT", "LOAD", host_.contract().script_text}).text;
    harness::Command take{"EVALSHA", sha, std::to_string(arguments->keys.size())};
    take.insert(take.end(), arguments->keys.begin(), arguments->keys.end());
    take.insert(take.end(), arguments->args.begin(), arguments->args.end());

    std::vector<std::vector<harness::Reply>> replies(threads);
    std::barrier gate{threads};
    std::atomic<int> in_flight{0};
    std::atomic<int> most{0};
    std::exception_ptr trouble;
    std::mutex trouble_mutex;
    {
      std::vector<std::jthread> running;
      for (int thread = 0; thread < threads; ++thread) {
        running.emplace_back([&, thread] {
          try {
            harness::Connection own = server_.connect();
            gate.arrive_and_wait();
            for (int taken = 0; taken < takes_each; ++taken) {
              const int now = in_flight.fetch_add(1) + 1;
              for (int seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
              }
              replies[static_cast<std::size_t>(thread)].push_back(own.run(take));
              in_flight.fetch_sub(1);
            }
          } catch (...) {
            const std::lock_guard lock{trouble_mutex};
            trouble = std::current_exception();
            gate.arrive_and_drop();
          }
        });
      }
    }
    if (trouble) std::rethrow_exception(trouble);
    std::vector<harness::Reply> all;
    for (auto& of_one : replies) std::move(of_one.begin(), of_one.end(), std::back_inserter(all));
    for (const auto& answer : host_.answers(all))
      if (const auto* read = std::get_if<Answer>(&answer); read != nullptr && read->allowed)
        ++result_.parallel_admitted;
    result_.parallel_takes = all.size();
    result_.parallel_capacity = static_cast<std::uint64_t>(capacity);
    result_.most_in_flight = static_cast<std::uint64_t>(most.load());
    result_.decisions += all.size();
  }

  harness::Server& server_;
  harness::LuaHost& host_;
  harness::Interleaver interleaver_;
  const Domain& domain_;
  std::uint64_t seed_;
  const std::function<void(std::uint64_t)>& between_;
  ConcurrencyResult result_;
};

}  // namespace

InterleavingRun run_interleaving(harness::Interleaver& interleaver, const Interleaving& interleaving) {
  InterleavingRun run;
  const std::vector<harness::Client> clients = clients_of(interleaving);
  run.history = interleaver.run(clients, interleaving.schedule, interleaving.start);
  std::size_t refused = 0;
  std::size_t step = 0;
  for (std::size_t index = 0; index < run.history.steps.size(); ++index) {
    const auto& outcome = run.history.steps[index].outcome;
    if (!outcome) continue;
    const auto* answer = std::get_if<Answer>(&*outcome);
    if (answer == nullptr) ++refused;
    if (answer == nullptr || !answer->allowed) continue;
    ++run.admitted;
    if (run.admitted == interleaving.plan.capacity.whole + 1) step = index;
  }
  const std::int64_t capacity = interleaving.plan.capacity.whole;
  const std::int64_t asked = std::int64_t{interleaving.clients} * interleaving.attempts;
  const auto fail = [&](std::string kind, std::string why, std::size_t at) {
    run.failure = model::Failure{model::Promise::concurrency, kind, at, std::move(why), "concurrency." + kind};
  };
  if (run.admitted > capacity) {
    fail("over_admission",
         fmt::format("at most {} at one instant; {} were admitted, the last at step {}", capacity, run.admitted,
                     step + 1),
         step);
  } else if (refused > 0) {
    fail("error_reply",
         fmt::format("{} of {} calls were answered by an error because others were under way", refused, asked),
         run.history.steps.size() - 1);
  } else if (run.history.complete && run.admitted < std::min(asked, capacity)) {
    fail("wrongly_denied",
         fmt::format("{} asked for one token each and {} were there; {} were admitted", asked, capacity, run.admitted),
         run.history.steps.size() - 1);
  }
  return run;
}

std::string interleaving_text(const Interleaving& interleaving, const InterleavingRun& run) {
  const auto clients = static_cast<std::size_t>(interleaving.clients);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> head{"step"};
  for (std::size_t client = 0; client < clients; ++client)
    head.push_back("client " + harness::client_name(static_cast<int>(client)));
  head.emplace_back("admitted");
  rows.push_back(head);
  std::int64_t admitted = 0;
  for (std::size_t index = 0; index < run.history.steps.size(); ++index) {
    const harness::Step& step = run.history.steps[index];
    std::vector<std::string> row(clients + 2);
    row[0] = std::to_string(index + 1);
    std::string what;
    for (const harness::Command& command : step.commands)
      if (command.front() != "MULTI" && command.front() != "EXEC") what += (what.empty() ? "" : ", ") + command.front();
    if (step.commands.size() == 1) what += " -> " + harness::show(step.reply);
    if (step.outcome) {
      const auto* answer = std::get_if<Answer>(&*step.outcome);
      const bool allowed = answer != nullptr && answer->allowed;
      admitted += allowed ? 1 : 0;
      what += answer == nullptr ? "  ERROR" : allowed ? "  ADMITTED" : "  denied";
    }
    row[static_cast<std::size_t>(step.slot.client) + 1] = what;
    row.back() = fmt::format("{} of {}", admitted, interleaving.plan.capacity.whole);
    if (run.failure && index == run.failure->call) row.back() += "   <- must be refused";
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> widths(clients + 2, 0);
  for (const auto& row : rows)
    for (std::size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], row[column].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (std::size_t column = 0; column < row.size(); ++column)
      line += fmt::format("{:<{}}  ", row[column], widths[column]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::optional<PassingMove> nearest_passing(harness::Interleaver& interleaver, const Interleaving& failing) {
  const Schedule& order = failing.schedule;
  for (std::size_t distance = 1; distance < order.size(); ++distance) {
    for (std::size_t step = 0; step < order.size(); ++step) {
      for (const bool before : {false, true}) {
        if (before ? step < distance : step + distance >= order.size()) continue;
        const std::size_t beside = before ? step - distance : step + distance;
        // A client's own steps keep their order.
        const auto [low, high] = std::minmax(step, beside);
        const auto own = [&](const Slot& slot) { return slot == order[step]; };
        const auto at = [&](std::size_t index) { return order.begin() + static_cast<std::ptrdiff_t>(index); };
        if (std::count_if(at(low), at(high + 1), own) > 1) continue;
        Interleaving moved = failing;
        moved.schedule.erase(moved.schedule.begin() + static_cast<std::ptrdiff_t>(step));
        moved.schedule.insert(moved.schedule.begin() + static_cast<std::ptrdiff_t>(beside), order[step]);
        // Padded, so that a call which now takes other steps can end.
        for (const Slot& slot : order) moved.schedule.push_back(slot);
        const InterleavingRun run = run_interleaving(interleaver, moved);
        if (!run.failure && run.history.complete)
          return PassingMove{step, beside, before, harness::schedule_of(run.history)};
      }
    }
  }
  return std::nullopt;
}

ConcurrencyResult judge_concurrency(harness::Server& server, harness::LuaHost& host, const Domain& domain,
                                    std::uint64_t seed, const std::function<void(std::uint64_t)>& between) {
  return Search{server, host, domain, seed, between}.run();
}

}  // namespace weir::gate
