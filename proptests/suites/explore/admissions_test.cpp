#include "model/explore_admissions.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace weir::model {
namespace {

/// The bound, as it is written: all events, and at each end every stretch from each begin. Where data was lost
/// a stretch falls into parts, each with its capacity, and each with the refill from the lowest reading that
/// its first attempt could have met to the furthest in it.
class Written {
 public:
  Written(const Entitlement& entitlement, std::int64_t now)
      : entitlement_(entitlement), readings_{now}, furthest_(now) {}

  void clock(std::int64_t now) {
    if (now == readings_.back()) return;
    if (furthest_ - now > entitlement_.back_most) {
      first_ = readings_.size();
      furthest_ = now;
    }
    furthest_ = std::max(furthest_, now);
    readings_.push_back(now);
  }
  void lose() {
    readings_.push_back(readings_.back());
    furthest_ = readings_.back();
    losses_.push_back({readings_.size() - 1, {}});
  }
  std::size_t begin() {
    attempts_.push_back({readings_.size() - 1, {}, 0});
    return attempts_.size() - 1;
  }
  bool end(std::size_t attempt, std::int64_t tokens) {
    attempts_[attempt].end = readings_.size() - 1;
    attempts_[attempt].tokens = tokens;
    if (tokens > 0)
      for (Loss& loss : losses_)
        if (!loss.filled && attempts_[attempt].begin >= loss.at) loss.filled = readings_.size() - 1;
    if (tokens == 0 || attempts_[attempt].begin < first_) return false;
    return std::ranges::any_of(attempts_, [&](const Attempt& from) {
      // Only stretches that the new one is in: the others were looked at when their last one ended.
      if (from.tokens == 0 || !from.end || from.begin < first_ || from.begin > attempts_[attempt].begin) return false;
      std::int64_t admitted = 0;
      for (const Attempt& each : attempts_)
        if (each.end && each.begin >= from.begin) admitted += each.tokens * entitlement_.per_token;
      return admitted > entitled(from.begin, *from.end);
    });
  }

 private:
  [[nodiscard]] std::int64_t entitled(std::size_t begin, std::size_t end_of_first) const {
    const auto reading = [&](std::size_t index) { return readings_.begin() + static_cast<std::ptrdiff_t>(index); };
    std::int64_t units = 0;
    std::size_t part = begin;
    const auto lowest = [&](std::size_t first, std::size_t last) {
      return *std::min_element(reading(first), reading(last) + 1);
    };
    const auto loss = std::ranges::find_if(losses_, [&](const Loss& each) { return each.at > begin; });
    std::int64_t from = lowest(begin, loss == losses_.end() ? end_of_first : std::min(end_of_first, loss->at - 1));
    const auto close = [&](std::size_t end) {
      units += entitlement_.capacity + entitlement_.refill * (*std::max_element(reading(part), reading(end)) - from);
    };
    for (auto each = loss; each != losses_.end(); ++each) {
      close(each->at);
      const std::size_t last = (each + 1 == losses_.end() ? readings_.size() : (each + 1)->at) - 1;
      part = each->at;
      from = lowest(part, std::min(last, each->filled.value_or(last)));
    }
    close(readings_.size());
    return units;
  }

  struct Attempt {
    std::size_t begin;  // index of the reading
    std::optional<std::size_t> end;
    std::int64_t tokens;
  };
  struct Loss {
    std::size_t at;  // index of the reading from which on the data is gone
    std::optional<std::size_t> filled;
  };
  Entitlement entitlement_;
  std::vector<Loss> losses_;
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

Seen walk(std::uint64_t seed, bool goes_back, int losses) {
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
    if (losses > 0 && draw(15) == 0) {
      --losses;
      admissions.lose(), written.lose();
    }
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
    for (const int losses : {0, 2}) {
      Seen all;
      for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
        const Seen seen = walk(seed, goes_back, losses);
        BOOST_REQUIRE_MESSAGE(!seen.differs,
                              "seed " << seed << (goes_back ? ", clock back" : "") << ", losses " << losses);
        all.ends += seen.ends;
        all.violations += seen.violations;
      }
      // Both kinds were seen, often.
      BOOST_TEST(all.violations > 10'000);
      BOOST_TEST(all.ends - all.violations > 10'000);
    }
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

BOOST_AUTO_TEST_CASE(with_the_data_goes_how_far_the_clock_had_got) {
  const Entitlement entitlement{1, 1, 1, 1, true};
  Admissions admissions{entitlement, 0};
  BOOST_TEST(!admissions.end(admissions.begin(), 1));
  admissions.lose();
  admissions.clock(-1);
  BOOST_TEST(!admissions.end(admissions.begin(), 1));
  admissions.clock(0);
  BOOST_TEST(!admissions.end(admissions.begin(), 1));
  // What was admitted since is remembered again.
  admissions.clock(-1);
  admissions.clock(0);
  BOOST_TEST(admissions.end(admissions.begin(), 1));
}

BOOST_AUTO_TEST_CASE(an_attempt_that_spans_a_clock_step_may_take_effect_at_the_lower_reading) {
  const Entitlement entitlement{1, 1, 1, 1, true};
  Admissions admissions{entitlement, 0};
  const auto slow = admissions.begin();
  admissions.clock(-1);
  BOOST_TEST(!admissions.end(slow, 1));
  admissions.clock(0);
  BOOST_TEST(!admissions.end(admissions.begin(), 1));
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
