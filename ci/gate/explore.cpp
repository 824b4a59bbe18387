#include "ci/gate/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "ci/gate/check.h"
#include "ci/gate/domain.h"
#include "model/verdict.h"
#include "proptests/harness/error.h"

namespace weir::gate {
namespace {

using harness::ContractError;
using harness::explore::Act;
using harness::explore::Mark;
using harness::explore::Scope;
using harness::explore::Space;

constexpr std::size_t audited = 100;  // ways

std::int64_t chosen(const char* option, const std::optional<std::int64_t>& asked, std::int64_t usual,
                    const harness::Range& claimed) {
  if (!asked) return std::clamp(usual, claimed.least, claimed.most);
  if (*asked >= claimed.least && *asked <= claimed.most) return *asked;
  throw ContractError(
      fmt::format("--{} {}: the contract claims {} to {}", option, *asked, claimed.least, claimed.most));
}

Micros in_whole(Micros time, Micros unit) {
  return (time + unit - Micros{1}) / unit * unit;
}

Scope scope_of(const harness::Contract& contract, const ExploreOptions& options, std::string& shown) {
  const Domain domain = domain_of(contract);
  const std::int64_t calls = std::int64_t{options.clients} * options.attempts;
  const std::int64_t refill = chosen("refill", options.refill, domain.refill.least, domain.refill);
  // Fewer than are asked for, even with what the ticks bring: or nobody would ever be denied.
  const std::int64_t spare = domain.fixed_window ? calls / (options.ticks + 1) : calls - options.ticks * refill;
  const std::int64_t capacity =
      chosen("capacity", options.capacity, std::max<std::int64_t>(spare - 1, 1), domain.capacity);
  const Micros period{std::clamp<std::int64_t>(1'000'000, domain.period_us.least, domain.period_us.most)};
  const auto made = Limit::make(capacity, refill, period);
  if (!made) throw ContractError("the scope's limit: " + made.error().message());
  const Limit& limit = made.value();

  Scope scope{.clients = options.clients,
              .attempts = options.attempts,
              .ticks = options.ticks,
              .faults = options.faults,
              .start = usual_start - usual_start.time_since_epoch() % std::max(domain.tick, period),
              .call = {.key = "a",
                       .capacity = std::to_string(capacity),
                       .refill = std::to_string(refill),
                       .period_us = std::to_string(period.count()),
                       .cost = "1"},
              .entitlement = domain.fixed_window ? model::Entitlement::fixed_window(capacity)
                                                 : model::Entitlement::token_bucket(limit)};
  scope.entitlement.clock_goes_back = options.faults > 0;
  scope.judged_in = domain.fixed_window ? period : Micros{1};
  scope.tick = options.tick.value_or(in_whole(domain.fixed_window ? period : limit.emission_interval(), domain.tick));
  if (scope.tick % domain.tick != Micros{0})
    throw ContractError(fmt::format("--tick {}: the contract's limiter reads a clock in units of {}",
                                    model::show_time(scope.tick.count()), model::show_time(domain.tick.count())));
  // As far back as the bound has to stand.
  scope.jump = domain.fixed_window
                   ? period
                   : std::max(Micros{scope.entitlement.back_most} / domain.tick * domain.tick, domain.tick);
  shown = domain.fixed_window ? fmt::format("{} per {}", capacity, model::show_time(period.count()))
                              : fmt::format("{}, +{} per {}", capacity, refill, model::show_time(period.count()));
  return scope;
}

std::vector<Explored::Obligation> obligations_of(const Explored& explored, const Space& space) {
  const auto marked = [&](int mark) { return explored.search.marked[static_cast<std::size_t>(mark)]; };
  std::vector<Explored::Obligation> all{
      {"admitted", marked(Mark::admitted), true},
      {"emptied", marked(Mark::emptied) + marked(Mark::denied), true},
      {"overlapped", marked(Mark::overlapped), explored.attempt_alone > 1 && explored.scope.clients > 1}};
  if (explored.scope.faults == 0) return all;
  const bool has_server_memory = space.effects().sessions.size() > 1 || space.effects().knows_scripts();
  for (int act = static_cast<int>(Act::lost_before); act < harness::explore::act_count; ++act) {
    bool applies = true;
    if (act == static_cast<int>(Act::script_flush)) applies = space.effects().knows_scripts();
    if (act == static_cast<int>(Act::restart_with_data)) applies = has_server_memory;
    if (loses_data(static_cast<Act>(act))) applies = space.effects().keyspaces.size() > 1;
    all.push_back({name(static_cast<Act>(act)), marked(act), applies});
  }
  return all;
}

std::string keys_text(const harness::explore::Keyspace& keyspace, std::int64_t clock_us) {
  std::string text;
  for (const auto& key : keyspace) {
    text += text.empty() ? "" : ", ";
    text += key.is_string && key.bytes.size() <= 16 ? harness::show(harness::Command{key.bytes}) : "(" + key.name + ")";
    text += key.expiry_ms < 0 ? "" : " for " + model::show_time(key.expiry_ms * 1'000 - clock_us);
  }
  return text.empty() ? "-" : text;
}

std::vector<Explored::Step> steps_of(Space& space, const std::vector<harness::explore::Happening>& way) {
  std::vector<Explored::Step> steps;
  harness::explore::State state = space.initial();
  std::int64_t admitted = 0;
  for (const auto& happening : way) {
    auto told = space.tell(state, happening);
    auto edges = std::move(space.expand(std::span{&state, 1}).front());
    state = std::move(std::ranges::find(edges, happening, &Space::Edge::label)->next);
    if (told.outcome == "ADMITTED") ++admitted;
    steps.push_back({happening, std::move(told), admitted, keys_text(space.keyspace(state), state.clock_us)});
  }
  return steps;
}

bool search(harness::Server& server, harness::LuaHost& host, const ExploreOptions& options, bool symmetric,
            const std::function<void(std::uint64_t)>& between, Explored& explored) try {
  Space space{server, host, explored.scope, symmetric};
  model::explore::Explorer<Space> explorer{space};
  explored.search = explorer.run({options.keep_going, options.states_most}, between);
  explored.symmetric = symmetric;
  explored.effects = space.effects().asked();
  explored.longest_attempt = space.longest_attempt();
  explored.attempt_alone = space.attempt_alone();
  explored.obligations = obligations_of(explored, space);
  explored.shortest = steps_of(space, explored.search.shortest);
  if (!explored.search.complete && explored.search.violations.empty())
    explored.cut_short = fmt::format("more than {} states", options.states_most);

  harness::Server other;
  if (!explored.search.shortest.empty()) explored.audit.push_back(replay(space, other, explored.search.shortest));
  for (std::size_t way = explored.audit.size(); way < audited; ++way)
    explored.audit.push_back(replay(space, other, random_way(space, way)));
  return true;
} catch (const harness::explore::IdentityMatters&) {
  return false;
}

}  // namespace

Explored::Outcome Explored::outcome() const {
  if (!audit_agrees()) return Outcome::inconclusive;
  if (!shortest.empty()) return Outcome::fail;
  const bool met = std::ranges::all_of(obligations, &Obligation::is_met);
  return search.complete && met ? Outcome::pass : Outcome::inconclusive;
}

bool Explored::audit_agrees() const {
  return std::ranges::all_of(audit, &harness::explore::Replay::agrees);
}

Explored explore(const std::filesystem::path& contract, const ExploreOptions& options,
                 const std::function<void(std::uint64_t)>& between) {
  harness::LuaHost host{contract};
  harness::Server server;
  Explored explored;
  explored.contract = host.contract();
  explored.scope = scope_of(explored.contract, options, explored.limit);
  explored.redis_version = server.version();
  const auto begun = std::chrono::steady_clock::now();
  if (!options.symmetry || !search(server, host, options, true, between, explored)) {
    explored.identity_matters = options.symmetry;
    search(server, host, options, false, between, explored);
  }
  explored.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return explored;
}

}  // namespace weir::gate
