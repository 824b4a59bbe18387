#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <boost/multiprecision/cpp_int.hpp>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// Breadth-first search over the states of a system, and nothing else: no I/O, no clock, no chance.
namespace weir::model::explore {

/// One thing that can happen next.
template <class State, class Label>
struct Edge {
  Label label;
  State next;
  int violation = 0;        // which promise it breaks; 0: none
  std::uint32_t marks = 0;  // what else it is counted under, a bit each
};

struct Options {
  bool keep_going = false;              // past the first violation, until every state was seen
  std::size_t states_most = 5'000'000;  // then the search gives up, and is not complete
};

template <class Label>
struct Exploration {
  std::uint64_t states = 0;
  std::uint64_t edges = 0;
  std::size_t steps = 0;  // of the longest way, if complete
  boost::multiprecision::cpp_int interleavings =
      0;                                    // ways from the first state to one with nothing left to do; if complete
  std::map<int, std::uint64_t> violations;  // edges that break a promise, by which
  std::array<std::uint64_t, 32> marked{};   // edges, by the bit of their mark
  std::vector<Label> shortest;              // the canonical smallest way to the first violation
  int violation = 0;                        // which promise that breaks
  bool complete = false;                    // every state was seen
};

/// A Space is a class with
///
///   types         State, Label
///   initial()     the first state
///   expand(span)  for each of these states, all that can happen next: a batch, so that one round trip serves many
///   key(state)    its bytes: equal exactly where the states are one
///   representative(state)  the state that stands for all which differ only in who is who
///   mover(label)  who acts, a number: a change of it from one step to the next is a context switch
///   before(a, b)  the order of labels, for which a counterexample is canonical
///
/// whose graph has no cycles. Visited states are kept as whole keys, so that no two are ever taken for
/// one. Not thread safe.
template <class Space>
class Explorer {
 public:
  using State = typename Space::State;
  using Label = typename Space::Label;

  explicit Explorer(Space& space) : space_(space) {}

  /// `between` is called with the states seen so far, and may throw to stop.
  Exploration<Label> run(const Options& options, const std::function<void(std::uint64_t)>& between = {}) {
    Exploration<Label> result;
    std::vector<State> frontier;
    frontier.push_back(space_.representative(space_.initial()));
    visited_.emplace(space_.key(frontier.front()), 0);
    depth_.push_back(0);
    std::optional<std::uint32_t> found;  // steps to the first violation
    std::uint32_t first = 0;             // of the frontier
    for (std::uint32_t level = 0; !frontier.empty() && (!found || options.keep_going); ++level) {
      std::vector<State> next;
      for (std::size_t done = 0; done < frontier.size(); done += batch) {
        if (between) between(visited_.size());
        if (visited_.size() > options.states_most) return counted(std::move(result));
        const auto states = std::span<const State>{frontier}.subspan(done, std::min(batch, frontier.size() - done));
        auto expanded = space_.expand(states);
        for (std::size_t i = 0; i < expanded.size(); ++i) {
          const auto from = static_cast<std::uint32_t>(first + done + i);
          for (auto& edge : expanded[i]) {
            State state = space_.representative(std::move(edge.next));
            const auto [at, is_new] =
                visited_.try_emplace(space_.key(state), static_cast<std::uint32_t>(visited_.size()));
            if (is_new) {
              depth_.push_back(level + 1);
              next.push_back(std::move(state));
            }
            edges_.emplace_back(from, at->second);
            for (std::uint32_t left = edge.marks; left != 0; left &= left - 1)
              ++result.marked[static_cast<std::size_t>(std::countr_zero(left))];
            if (edge.violation == 0) continue;
            ++result.violations[edge.violation];
            if (!found) found = level;
            if (*found == level) leads_.push_back(from);
          }
        }
      }
      first += static_cast<std::uint32_t>(frontier.size());
      frontier = std::move(next);
    }
    result.complete = frontier.empty();
    if (result.complete) count_ways(result);
    if (found) find_shortest(result, *found);
    return counted(std::move(result));
  }

 private:
  static constexpr std::size_t batch = 1024;

  Exploration<Label> counted(Exploration<Label> result) const {
    result.states = visited_.size();
    result.edges = edges_.size();
    return result;
  }

  /// From each state as many ways lead on as from all that can follow it, and that number is the same for
  /// all whom one representative stands for.
  void count_ways(Exploration<Label>& result) const {
    using boost::multiprecision::cpp_int;
    const std::size_t states = visited_.size();
    std::vector<std::uint32_t> incoming(states);
    std::vector<std::size_t> begins(states + 1);  // edges_ stand in the order of where they come from
    for (const auto& [from, to] : edges_) ++incoming[to], ++begins[from + 1];
    for (std::size_t state = 0; state < states; ++state) begins[state + 1] += begins[state];
    std::vector<cpp_int> ways(states);
    std::vector<std::size_t> steps(states);
    ways[0] = 1;
    std::vector<std::uint32_t> ready{0};
    while (!ready.empty()) {
      const std::uint32_t state = ready.back();
      ready.pop_back();
      if (begins[state] == begins[state + 1]) result.interleavings += ways[state];
      result.steps = std::max(result.steps, steps[state]);
      for (std::size_t edge = begins[state]; edge < begins[state + 1]; ++edge) {
        const std::uint32_t to = edges_[edge].second;
        ways[to] += ways[state];
        steps[to] = std::max(steps[to], steps[state] + 1);
        if (--incoming[to] == 0) ready.push_back(to);
      }
    }
  }

  /// Of the shortest ways to a violation the one with the fewest context switches, and of those the first
  /// in the order of labels. It is looked for among the states themselves, not among representatives,
  /// because only there is it told who moves.
  void find_shortest(Exploration<Label>& result, std::uint32_t length) {
    std::vector<bool> good(visited_.size());
    for (const std::uint32_t state : leads_) good[state] = true;
    for (auto edge = edges_.rbegin(); edge != edges_.rend(); ++edge)
      if (good[edge->second] && depth_[edge->second] == depth_[edge->first] + 1 && depth_[edge->second] <= length)
        good[edge->first] = true;
    std::map<std::pair<std::string, int>, Best> known;
    State at = space_.initial();
    int last = nobody;
    for (std::uint32_t depth = 0; depth <= length; ++depth) {
      const Best best = best_from(at, last, depth, length, good, known);
      assert(best.edge);
      result.shortest.push_back(best.edge->label);
      result.violation = best.edge->violation;
      last = space_.mover(best.edge->label);
      at = best.edge->next;
    }
  }

  static constexpr int nobody = std::numeric_limits<int>::min();
  static constexpr int no_way = std::numeric_limits<int>::max();
  struct Best {
    int switches = no_way;
    std::optional<Edge<State, Label>> edge;
  };

  Best best_from(const State& state, int last, std::uint32_t depth, std::uint32_t length, const std::vector<bool>& good,
                 std::map<std::pair<std::string, int>, Best>& known) {
    const std::pair key{space_.key(state), last};
    if (const auto found = known.find(key); found != known.end()) return found->second;
    Best best;
    auto expanded = space_.expand(std::span{&state, 1});
    for (auto& edge : expanded.front()) {
      const int mover = space_.mover(edge.label);
      int switches = last == nobody || mover == last ? 0 : 1;
      if (depth == length) {
        if (edge.violation == 0) continue;
      } else {
        const auto at = visited_.find(space_.key(space_.representative(edge.next)));
        if (at == visited_.end() || !good[at->second] || depth_[at->second] != depth + 1) continue;
        const int rest = best_from(edge.next, mover, depth + 1, length, good, known).switches;
        if (rest == no_way) continue;
        switches += rest;
      }
      const bool is_first = switches == best.switches && space_.before(edge.label, best.edge->label);
      if (switches < best.switches || is_first) best = {switches, std::move(edge)};
    }
    return known.emplace(key, std::move(best)).first->second;
  }

  Space& space_;
  std::unordered_map<std::string, std::uint32_t> visited_;      // key -> number, in the order of discovery
  std::vector<std::uint32_t> depth_;                            // by number
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;  // from, to
  std::vector<std::uint32_t> leads_;                            // states from which the first violation is one step
};

}  // namespace weir::model::explore
