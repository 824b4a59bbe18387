// The search itself, without Redis: against an enumeration of every way, one by one.

#include <boost/test/unit_test.hpp>
#include <limits>

#include "model/explore.h"
#include "proptests/suites/explore/toy.h"

namespace weir::model::explore {
namespace {

/// Every way from the first state to the last, none skipped and none remembered.
struct Enumeration {
  explicit Enumeration(const Toy& toy) : toy_(toy) { go(toy.initial()); }

  std::uint64_t ways = 0;
  std::vector<int> shortest;  // to a violation: fewest steps, then changes of mover, then the order of movers

 private:
  void go(const Toy::State& state) {
    const auto edges = std::move(toy_.expand(std::span{&state, 1}).front());
    if (edges.empty()) ++ways;
    for (const auto& edge : edges) {
      way_.push_back(edge.label);
      if (edge.violation != 0 && (shortest.empty() || rank(way_) < rank(shortest))) shortest = way_;
      go(edge.next);
      way_.pop_back();
    }
  }
  static std::tuple<std::size_t, int, std::vector<int>> rank(const std::vector<int>& way) {
    int switches = 0;
    for (std::size_t i = 1; i < way.size(); ++i) switches += way[i] == way[i - 1] ? 0 : 1;
    return {way.size(), switches, way};
  }

  const Toy& toy_;
  std::vector<int> way_;
};

Exploration<int> search(Toy toy, bool symmetric, bool keep_going = true) {
  toy.symmetric = symmetric;
  return Explorer<Toy>{toy}.run({.keep_going = keep_going});
}

BOOST_AUTO_TEST_SUITE(search_suite)

BOOST_AUTO_TEST_CASE(reduced_unreduced_and_enumerated_agree_on_every_small_scope) {
  int violated = 0;
  for (const auto& [clients, attempts, ticks] :
       {std::tuple{1, 3, 2}, {2, 1, 2}, {2, 2, 0}, {2, 2, 2}, {3, 1, 1}, {3, 1, 2}}) {
    for (int capacity = 1; capacity <= clients * attempts; ++capacity) {
      const Toy toy{clients, attempts, ticks, capacity};
      const Enumeration enumerated{toy};
      const auto reduced = search(toy, true);
      const auto whole = search(toy, false);
      BOOST_TEST_CONTEXT(clients << " x " << attempts << " x " << ticks << ", capacity " << capacity) {
        BOOST_TEST(whole.interleavings == enumerated.ways);
        BOOST_TEST(reduced.interleavings == enumerated.ways);
        BOOST_TEST(reduced.shortest == enumerated.shortest);
        BOOST_TEST(whole.shortest == enumerated.shortest);
        BOOST_TEST(search(toy, true, false).shortest == enumerated.shortest);
        BOOST_TEST(reduced.states <= whole.states);
        BOOST_TEST(static_cast<int>(whole.steps) == 2 * clients * attempts + ticks);
      }
      violated += enumerated.shortest.empty() ? 0 : 1;
    }
  }
  BOOST_TEST(violated > 3);  // or the shortest ways were all empty
}

BOOST_AUTO_TEST_CASE(the_ways_are_counted_as_the_multinomial_says) {
  BOOST_TEST(search({2, 2, 2, 4}, true).interleavings == 3'150);
  BOOST_TEST(search({3, 2, 0, 4}, true).interleavings == 34'650);
  BOOST_TEST(search({3, 2, 2, 4}, true).interleavings == 3'153'150);
  BOOST_TEST(search({4, 2, 2, 4}, true).interleavings == 9'648'639'000);
}

BOOST_AUTO_TEST_CASE(a_search_past_its_limit_is_not_complete) {
  Toy toy{3, 2, 2, 4};
  const auto found = Explorer<Toy>{toy}.run({.keep_going = true, .states_most = 100});
  BOOST_TEST(!found.complete);
  BOOST_TEST(found.interleavings == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::model::explore
