#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "model/explore.h"
#include "model/explore_admissions.h"

namespace weir::model::explore {

/// A counter that is read in one step and written back in the next, in memory: get_then_set.lua
/// as a space of its own, with neither Redis nor Lua, which shares with the real one only the search and
/// what it judges by.
struct Toy {
  struct Client {
    int ended = 0;
    int read = -1;        // what it has read; -1: it is between two attempts
    std::int64_t at = 0;  // and when
    std::int64_t begun = 0;
    auto operator<=>(const Client&) const = default;
  };
  struct State {
    std::vector<Client> clients;
    int count = 0;
    int now = 0;
    Admissions admissions;
  };
  using Label = int;  // a client, or the clock after them

  int clients, attempts, ticks, capacity;
  bool symmetric = true;

  [[nodiscard]] State initial() const {
    Entitlement entitlement{capacity, 1, 1, capacity, false};
    return {std::vector<Client>(static_cast<std::size_t>(clients)), 0, 0, Admissions{entitlement, 0}};
  }

  [[nodiscard]] std::vector<std::vector<Edge<State, Label>>> expand(std::span<const State> states) const {
    std::vector<std::vector<Edge<State, Label>>> all;
    for (const State& state : states) {
      auto& edges = all.emplace_back();
      for (int client = 0; client < clients; ++client)
        if (state.clients[static_cast<std::size_t>(client)].ended < attempts) edges.push_back(step(state, client));
      if (state.now == ticks) continue;
      State next = state;
      next.admissions.clock(++next.now);
      edges.push_back({clients, std::move(next), 0, 0});
    }
    return all;
  }

  [[nodiscard]] std::string key(const State& state) const {
    std::vector<std::int64_t> numbers{state.count, state.now};
    for (const Client& client : state.clients)
      for (const std::int64_t number : {std::int64_t{client.ended}, std::int64_t{client.read}, client.at,
                                        client.read < 0 ? 0 : state.admissions.place(client.begun)})
        numbers.push_back(number);
    state.admissions.append_to(numbers);
    std::string bytes;
    for (const std::int64_t number : numbers) bytes += std::to_string(number) + ' ';
    return bytes;
  }
  [[nodiscard]] State representative(State state) const {
    if (symmetric) std::ranges::sort(state.clients);
    return state;
  }
  [[nodiscard]] static int mover(Label label) { return label; }
  [[nodiscard]] static bool before(Label left, Label right) { return left < right; }

 private:
  [[nodiscard]] Edge<State, Label> step(const State& state, int client) const {
    Edge<State, Label> edge{client, state, 0, 0};
    Client& own = edge.next.clients[static_cast<std::size_t>(client)];
    if (own.read < 0) {
      own.read = state.count;
      own.at = state.now;
      own.begun = edge.next.admissions.begin();
      return edge;
    }
    const bool allowed = own.read < capacity;
    edge.next.count = allowed ? own.read + 1 : own.read;
    edge.violation = edge.next.admissions.end(own.begun, allowed ? 1 : 0) ? 1 : 0;
    own = Client{.ended = own.ended + 1};
    return edge;
  }
};

}  // namespace weir::model::explore
