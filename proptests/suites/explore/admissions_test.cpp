#include "model/explore_admissions.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace weir::model {
namespace {

/// The bound, as it is written: all events, and at each end every stretch from each begin.
class Written {
 public:
  Written(const Entitlement& entitlement, std::int64_t now)
      : entitlement_(entitlement), readings_{now}, furthest_(now) {}

  void clock(std::int64_t now) {
    if (furthest_ - now > entitlement_.back_most) {
      first_ = readings_.size();
      furthest_ = now;
    }
    furthest_ = std::max(furthest_, now);
    readings_.push_back(now);
  }
  std::size_t begin() {
    attempts_.push_back({readings_.size() - 1, {}, 0});
    return attempts_.size() - 1;
  }
  bool end(std::size_t attempt, std::int64_t tokens) {
    attempts_[attempt].end = readings_.size() - 1;
    attempts_[attempt].tokens = tokens;
    if (tokens == 0 || attempts_[attempt].begin < first_) return false;
    return std::ranges::any_of(attempts_, [&](const Attempt& from) {
      // Only stretches that the new one is in: the others were looked at when their last one ended.
      if (from.tokens == 0 || !from.end || from.begin < first_ || from.begin > attempts_[attempt].begin) return false;
      std::int64_t admitted = 0;
      for (const Attempt& each : attempts_)
        if (each.end && each.begin >= from.begin) admitted += each.tokens * entitlement_.per_token;
      const auto at = readings_.begin() + static_cast<std::ptrdiff_t>(from.begin);
      return admitted > entitlement_.capacity + entitlement_.refill * (*std::max_element(at, readings_.end()) - *at);
    });
  }

 private:
  struct Attempt {
    std::size_t begin;  // index of the reading
    std::optional<std::size_t> end;
    std::int64_t tokens;
  };
  Entitlement entitlement_;
  std::vector<std::int64_t> readings_;
  std::int64_t furthest_;
  std::size_t first_ = 0;
  std::vector<Attempt> attempts_;
};

struct Seen {
  int violations = 0;
  int ends = 0;
  bool differs = false;
};

Seen walk(std::uint64_t seed, bool goes_back) {
  std::mt19937_64 random{seed};
  const auto draw = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  };
  const std::int64_t per_token = 1 + draw(2);
  const std::int64_t capacity = per_token * (1 + draw(3));
  const std::int64_t refill = 1 + draw(2);
  const Entitlement entitlement{capacity, refill, per_token, capacity / refill, goes_back};
  std::int64_t now = 100;
  Admissions admissions{entitlement, now};
  Written written{entitlement, now};
  std::vector<std::pair<std::int64_t, std::size_t>> pending;
  Seen seen;
  for (int event = 0; event < 40; ++event) {
    switch (draw(goes_back ? 4 : 3)) {
      case 0:
        if (pending.size() < 4) pending.emplace_back(admissions.begin(), written.begin());
        break;
      case 1:
      case 2:
        if (!pending.empty()) {
          const auto index = static_cast<std::ptrdiff_t>(draw(static_cast<std::int64_t>(pending.size()) - 1));
          const auto [begun, attempt] = pending[static_cast<std::size_t>(index)];
          pending.erase(pending.begin() + index);
          const std::int64_t tokens = draw(2);
          const bool over = written.end(attempt, tokens);
          ++seen.ends;
          seen.violations += over ? 1 : 0;
          seen.differs |= admissions.end(begun, tokens) != over;
        }
        break;
      case 3: admissions.clock(now += draw(2)), written.clock(now); break;
      default: admissions.clock(now -= draw(3)), written.clock(now); break;
    }
  }
  return seen;
}

BOOST_AUTO_TEST_SUITE(admissions)

BOOST_AUTO_TEST_CASE(what_is_remembered_decides_as_the_whole_history_does) {
  for (const bool goes_back : {false, true}) {
    Seen all;
    for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
      const Seen seen = walk(seed, goes_back);
      BOOST_REQUIRE_MESSAGE(!seen.differs, "seed " << seed << (goes_back ? ", clock back" : ""));
      all.ends += seen.ends;
      all.violations += seen.violations;
    }
    // Both kinds were seen, often.
    BOOST_TEST(all.violations > 10'000);
    BOOST_TEST(all.ends - all.violations > 10'000);
  }
}

BOOST_AUTO_TEST_CASE(lost_data_excuses_one_capacity_and_no_more) {
  const Entitlement entitlement{3, 1, 1, 3, true};
  Admissions admissions{entitlement, 0};
  BOOST_TEST(!admissions.end(admissions.begin(), 3));
  admissions.lose();
  BOOST_TEST(!admissions.end(admissions.begin(), 3));
  BOOST_TEST(admissions.end(admissions.begin(), 1));
}

BOOST_AUTO_TEST_CASE(data_lost_while_nothing_was_owed_excuses_nothing_later) {
  const Entitlement entitlement{3, 1, 1, 3, true};
  Admissions admissions{entitlement, 0};
  admissions.lose();
  BOOST_TEST(!admissions.end(admissions.begin(), 3));
  BOOST_TEST(admissions.end(admissions.begin(), 1));
}

BOOST_AUTO_TEST_CASE(an_attempt_that_spans_a_refill_may_take_effect_after_it) {
  const Entitlement entitlement{1, 1, 1, 1, false};
  Admissions admissions{entitlement, 0};
  const auto slow = admissions.begin();
  BOOST_TEST(!admissions.end(admissions.begin(), 1));
  admissions.clock(1);
  BOOST_TEST(!admissions.end(slow, 1));
  BOOST_TEST(admissions.end(admissions.begin(), 1));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir::model
