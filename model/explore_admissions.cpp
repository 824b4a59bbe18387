#include "model/explore_admissions.h"

#include <algorithm>
#include <cassert>

namespace weir::model {

Admissions::Admissions(const Entitlement& entitlement, std::int64_t now)
    : entitlement_(entitlement), now_(now), furthest_(now) {
  start();
}

/// Where the clock never goes back, a stretch that begins with nobody admitted says less than a later one
/// that does, so it may as well count: fewer histories are told apart.
void Admissions::start() {
  stretches_.push_back({next_id_++, 0, 0, now_, now_, !entitlement_.clock_goes_back});
  normalize();
}

/// Whether what takes effect first in it, or first since data was lost, may still meet a lower reading.
bool Admissions::is_open(const Stretch& stretch) const {
  return stretch.id < lost_at_ ? empty_ : stretch.pending > 0 && !stretch.counts;
}

void Admissions::clock(std::int64_t now) {
  if (now == now_) return;
  now_ = now;
  if (furthest_ - now > entitlement_.back_most) {
    stretches_.clear();
    furthest_ = now;
  }
  furthest_ = std::max(furthest_, now);
  for (Stretch& stretch : stretches_) {
    if (now <= stretch.furthest) continue;
    stretch.level -= entitlement_.refill * (now - stretch.furthest);
    stretch.furthest = now;
  }
  for (Stretch& stretch : stretches_) {
    if (now >= stretch.lowest || !is_open(stretch)) continue;
    stretch.level -= entitlement_.refill * (stretch.lowest - now);
    stretch.lowest = now;
  }
  start();
}

std::int64_t Admissions::begin() {
  ++stretches_.back().pending;
  return stretches_.back().id;
}

bool Admissions::end(std::int64_t begun, std::int64_t tokens) {
  const auto own = std::ranges::find(stretches_, begun, &Stretch::id);
  if (own == stretches_.end()) return false;
  assert(own->pending > 0);
  --own->pending;
  bool over = false;
  if (tokens > 0) {
    if (begun >= lost_at_) empty_ = false;
    own->counts = true;
    for (auto stretch = stretches_.begin(); stretch <= own; ++stretch) {
      stretch->level += tokens * entitlement_.per_token;
      over |= stretch->counts && stretch->level > entitlement_.capacity;
    }
  }
  normalize();
  return over;
}

void Admissions::lose() {
  for (Stretch& stretch : stretches_) {
    stretch.level -= entitlement_.capacity;
    stretch.lowest = now_;
    stretch.furthest = now_;
  }
  furthest_ = now_;
  empty_ = entitlement_.clock_goes_back;
  lost_at_ = next_id_;
  start();
}

std::int64_t Admissions::level() const noexcept {
  std::int64_t most = 0;
  for (const Stretch& stretch : stretches_)
    if (stretch.counts) most = std::max(most, stretch.level);
  return most;
}

/// An earlier stretch counts whatever a later one counts, and has a furthest reading no lower, so refills no
/// more. Where its level is as high too, the later one is as good as it; and of two that are alike and that
/// nobody can tell apart by beginning in between, one is enough. While data is lost, what began before it and
/// what began after are not alike: only the earlier gains where the clock goes back.
void Admissions::normalize() {
  const Stretch* last_counted = nullptr;
  for (Stretch& stretch : stretches_) {
    const bool alike = !empty_ || stretch.id < lost_at_ || last_counted == nullptr || last_counted->id >= lost_at_;
    if (last_counted != nullptr && last_counted->level >= stretch.level && alike) {
      stretch.level = last_counted->level;
      stretch.furthest = last_counted->furthest;
      stretch.counts = true;
    }
    if (stretch.counts) last_counted = &stretch;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    const Stretch& stretch = stretches_[i];
    const bool is_last = i + 1 == stretches_.size();
    const auto says_as_much = [&](const Stretch& next) {
      return next.counts && next.furthest == stretch.furthest && next.level >= stretch.level;
    };
    if (!is_last && stretch.pending == 0 && (!stretch.counts || says_as_much(stretches_[i + 1]))) continue;
    stretches_[kept++] = stretch;
  }
  stretches_.resize(kept);
}

std::int64_t Admissions::place(std::int64_t begun) const noexcept {
  const auto own = std::ranges::find(stretches_, begun, &Stretch::id);
  return own == stretches_.end() ? -1 : own - stretches_.begin();
}

void Admissions::append_to(std::vector<std::int64_t>& numbers) const {
  numbers.push_back(furthest_ - now_);
  if (lost_at_ > 0)  // where among them the last loss was, and if it matters any more
    numbers.push_back(2 * (std::ranges::lower_bound(stretches_, lost_at_, {}, &Stretch::id) - stretches_.begin()) +
                      std::int64_t{empty_});
  numbers.push_back(static_cast<std::int64_t>(stretches_.size()));
  for (const Stretch& stretch : stretches_)
    for (const std::int64_t number : {stretch.pending, stretch.level, is_open(stretch) ? stretch.lowest - now_ : 1,
                                      stretch.furthest - now_, std::int64_t{stretch.counts}})
      numbers.push_back(number);
}

}  // namespace weir::model
