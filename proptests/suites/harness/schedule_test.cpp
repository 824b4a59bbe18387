#include "proptests/harness/schedule.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <vector>

namespace weir::harness {
namespace {

BOOST_AUTO_TEST_SUITE(schedule)

BOOST_AUTO_TEST_CASE(a_schedule_reads_back_as_it_was_printed) {
  const Schedule schedule{Slot::of(0),         Slot::of(1),   Slot::of(Micros{1'000'000}),
                          Slot::of(25),        Slot::of(26),  Slot::of(Micros{-5}),
                          Slot::of(Micros{0}), Slot::of(701), Slot::of(702)};
  const std::string text = "A B +1000000us Z AA -5us +0us ZZ AAA";
  BOOST_TEST(show(schedule) == text);
  BOOST_TEST((parse_schedule(text).value() == schedule));
  BOOST_TEST((parse_schedule("  A\n\tB ").value() == Schedule{Slot::of(0), Slot::of(1)}));
  BOOST_TEST(parse_schedule("").value().empty());
}

BOOST_AUTO_TEST_CASE(a_word_that_is_no_slot_is_named) {
  for (const char* const word : {"a", "1", "A1", "AAAA", "+", "-", "+us", "+1", "+1ms", "+-1us", "--1us", "+1usx",
                                 "1us", "+99999999999999999999us"}) {
    const auto parsed = parse_schedule("A " + std::string{word} + " B");
    BOOST_REQUIRE_MESSAGE(!parsed, word);
    BOOST_TEST(parsed.error() == "\"" + std::string{word} +
                                     "\" is no slot of a schedule: it must be a client (A, B, ...) or a step of the "
                                     "clock, like +1000us or -5us");
  }
}

BOOST_AUTO_TEST_CASE(a_seed_is_one_schedule_on_every_machine) {
  const std::array steps{2, 3};
  const std::array ticks{Micros{7}, Micros{-7}};
  BOOST_TEST(show(uniform_schedule(steps, ticks, 1)) == "B A A +7us B -7us B");
  BOOST_TEST(show(uniform_schedule(steps, {}, 2)) == "B A B B A");
}

BOOST_AUTO_TEST_CASE(nothing_to_do_is_an_empty_schedule) {
  BOOST_TEST(uniform_schedule({}, {}, 1).empty());
  const std::array steps{0, 0};
  BOOST_TEST(uniform_schedule(steps, {}, 1).empty());
}

BOOST_AUTO_TEST_CASE(every_interleaving_is_equally_likely) {
  // 3 steps of A, 2 of B and one tick: 6! / (3! 2! 1!) = 60 interleavings, unlike enough that choosing
  // the next client evenly, whatever it has left, gives AAAB.. 1/27 and not 1/60 of the runs.
  const std::array steps{3, 2};
  const std::array ticks{Micros{1}};
  constexpr int runs = 60'000;
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 0; seed < runs; ++seed) ++seen[show(uniform_schedule(steps, ticks, seed))];
  BOOST_TEST(seen.size() == 60U);
  double chi_square = 0;
  for (const auto& [interleaving, count] : seen) {
    const double off = count - runs / 60.0;
    chi_square += off * off / (runs / 60.0);
  }
  // 59 degrees of freedom: 1 in 1,000 fair samples is above 98.3. The seeds are fixed, so this cannot flicker.
  BOOST_TEST(chi_square < 98.3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::harness
