#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ci/gate/picture_parts.h"
#include "ci/gate/report.h"
#include "model/bucket.h"

namespace weir::gate {
namespace {

using model::Expected;
using model::Observation;
using model::Rational;
using model::show_time;
using model::TimedCall;

/// "3", "0.999", "1/3": exact, as short as it can be.
std::string show_tokens(const Rational& tokens) {
  const model::Integer below{denominator(tokens)};
  if (below != 1 && 1'000'000 % below != 0) return tokens.str();
  return fmt::format("{:.15g}", tokens.convert_to<double>());
}

/// The bucket at one call of its tenant.
struct Balance {
  std::size_t call;
  Rational before;
  Rational right;    // after it, as the model has it
  Rational limiter;  // after it, by what the limiter gave
  std::optional<std::int64_t> told;
};

/// From the verdict's own run of the model: it ends where the two part.
std::vector<Balance> balances(const Counterexample& found, int tenant) {
  std::vector<Balance> all;
  for (std::size_t index = 0; index < std::min(found.verdict.expected.size(), found.history.seen.size()); ++index) {
    const TimedCall& call = found.history.scenario.calls[index];
    const Expected& expected = found.verdict.expected[index];
    const Observation& seen = found.history.seen[index];
    if (call.tenant != tenant || expected.bad) continue;
    const Rational cost{call.cost.whole};
    const Rational taken = expected.decision.allowed() ? cost : Rational{0};
    // A fixed window has no fractions: what is left says all.
    const Rational before =
        expected.tokens.empty() ? Rational{expected.decision.remaining} + taken : Rational{expected.tokens};
    const bool gave = seen.kind == Observation::Kind::answered && seen.allowed;
    all.push_back({index, before, before - taken, gave ? before - cost : before, seen.remaining});
  }
  return all;
}

class Calls {
 public:
  Calls(Sheet& sheet, const Counterexample& found)
      : sheet_(sheet),
        svg_(sheet.svg),
        found_(found),
        calls_(found.history.scenario.calls),
        shown_(found.history.seen.size()),
        column_(column_width(shown_, 150, 240)),
        letters_(static_cast<std::size_t>(column_ / 7.2)) {}

  void draw() {
    sheet_.width = lanes_left + static_cast<double>(shown_) * column_ + lanes_right;
    place_lanes();
    for (std::size_t call = 0; call < shown_; ++call) draw_call(call);
    draw_clock();
    sheet_.bottom = model_lane_ + 62;
    draw_tokens();
  }

 private:
  double middle(std::size_t call) const { return lanes_left + (static_cast<double>(call) + 0.5) * column_; }
  double right_edge() const { return lanes_left + static_cast<double>(shown_) * column_; }
  double caller_lane(int tenant) const { return clock_lane_ + 62 + 64 * tenant; }

  void place_lanes() {
    for (const TimedCall& call : calls_) tenants_ = std::max(tenants_, call.tenant + 1);
    clock_lane_ = sheet_.bottom + 58;
    limiter_lane_ = caller_lane(tenants_ - 1) + 68;
    model_lane_ = limiter_lane_ + 74;
    const double top = sheet_.bottom + 2;
    const double bottom = model_lane_ + 62 + plot_height + 66;
    if (found_.failure.call < shown_)
      svg_.rect({middle(found_.failure.call) - column_ / 2, top}, column_, bottom - top, "column", 6);
    const auto lane = [&](double y, std::string_view name, std::string_view style) {
      svg_.line({lanes_left, y}, {right_edge(), y}, style);
      svg_.text({lanes_left - 14, y + 4}, name, "right strong");
    };
    lane(clock_lane_, "clock", "lane");
    for (int tenant = 0; tenant < tenants_; ++tenant)
      lane(caller_lane(tenant), tenants_ == 1 ? "caller" : tenant == 0 ? "tenant A" : "tenant B", "lane");
    lane(limiter_lane_, "limiter", "redis");
    lane(model_lane_, "model", "lane");
  }

  void draw_call(std::size_t index) {
    const TimedCall& call = calls_[index];
    const double x = middle(index);
    const bool parts = index == found_.failure.call;
    const bool known = index < found_.verdict.expected.size();
    const std::string seen = seen_text(found_.history.seen[index]);
    const std::string right = known ? right_text(found_.verdict.expected[index]) : "";
    const std::string cost = call.cost.is_whole() ? call.cost.text() : '"' + call.cost.text() + '"';
    const std::string limit = limit_text(found_.history.scenario.plan_of(call));

    svg_.open(fmt::format("s{}", index + 1),
              fmt::format("call {}: cost {}, limit {}\nlimiter: {}\nmodel: {}", index + 1, cost, limit, seen, right));
    svg_.rect({x - column_ / 2 + 2, sheet_.bottom + 4}, column_ - 4, model_lane_ + 50 - sheet_.bottom, "hit", 6);
    svg_.text({x, sheet_.bottom + 20}, fmt::format("call {}", index + 1), "middle strong");
    if (parts) svg_.text({x, sheet_.bottom + 36}, "here they part", "middle bad strong");

    const double caller = caller_lane(call.tenant);
    svg_.line({x, caller + 13}, {x, limiter_lane_ - 7}, "arrow");
    svg_.rect({x - 46, caller - 13}, 92, 26, "box", 13);
    svg_.text({x, caller + 4.5}, shorter("cost " + cost, 13), "middle");
    const bool said = index > 0 && calls_[index - 1].plan == call.plan;
    if (!said) svg_.text({x + 6, caller + 31}, shorter(limit, letters_ / 2 + 4), "quiet");

    const bool takes_bad_input = known && found_.verdict.expected[index].bad && seen.starts_with("ALLOWED");
    answer(x, limiter_lane_, seen, parts || takes_bad_input ? "bad" : "");
    answer(x, model_lane_, right, parts ? "model" : "");
    svg_.close();
  }

  static std::string shorter(const std::string& text, std::size_t most) {
    const auto lines = wrapped(text, most, 1);
    return lines.empty() ? "" : lines.front();
  }

  /// A dot on the lane, and what was said under it: the word first, its figures on lines of their own.
  void answer(double x, double lane, const std::string& text, std::string_view mark) {
    if (text.empty()) return;
    const bool allowed = text.starts_with("ALLOWED");
    svg_.dot({x, lane}, 7, fmt::format("dot {}", !mark.empty() ? mark : allowed ? "good" : "no"));
    const std::size_t comma = text.find(", ");
    const bool short_word = comma != std::string::npos && comma < 10;
    std::vector<std::string> rest = wrapped(short_word ? text.substr(comma + 2) : text, letters_, short_word ? 1 : 2);
    double y = lane + 24;
    if (short_word || rest.size() == 1) {
      svg_.text({x, y}, short_word ? text.substr(0, comma) : text,
                fmt::format("middle strong {}", !mark.empty() ? mark
                                                : allowed     ? "good"
                                                              : ""));
      if (!short_word) return;
      y += Svg::line_height;
    }
    svg_.texts({x, y}, rest, "middle quiet");
  }

  void draw_clock() {
    std::int64_t clock = 0;
    for (std::size_t index = 0; index < shown_; ++index) {
      const std::int64_t advance = calls_[index].advance_us;
      clock += advance;
      const double x = middle(index);
      svg_.dot({x, clock_lane_}, 4, "dot");
      svg_.text({x, clock_lane_ + 21}, show_time(clock), "middle code");
      if (index == 0) continue;
      const double from = middle(index - 1) + 12;
      const double between = (from + x - 12) / 2;
      if (advance < 0) {
        svg_.line({x - 12, clock_lane_}, {from, clock_lane_}, "odd-arrow");
        svg_.text({between, clock_lane_ - 8}, "back " + show_time(-advance), "middle odd strong");
      } else if (advance > 0) {
        svg_.line({from, clock_lane_}, {x - 12, clock_lane_}, "arrow");
        svg_.text({between, clock_lane_ - 8}, "+" + show_time(advance), "middle quiet");
      } else {
        svg_.text({between, clock_lane_ - 8}, "same instant", "middle quiet");
      }
    }
  }

  void draw_tokens() {
    const int tenant = found_.failure.call < shown_ ? calls_[found_.failure.call].tenant : 0;
    const std::vector<Balance> all = balances(found_, tenant);
    if (all.empty()) return;
    const Balance& last = all.back();
    const double gap = std::abs((last.right - last.limiter).convert_to<double>());
    const Scale scale = scale_of(all, gap);
    const auto y = [&](const Rational& tokens) { return scale(tokens.convert_to<double>()); };

    svg_.text({lanes_left - 14, scale.top + plot_height / 2 - 4}, "tokens", "right strong");
    if (tenants_ > 1)
      svg_.text({lanes_left - 14, scale.top + plot_height / 2 + 12}, tenant == 0 ? "of A" : "of B", "right quiet");
    if (scale.inside(0)) {
      svg_.line({lanes_left, scale(0)}, {right_edge() + 12, scale(0)}, "rule");
      svg_.text({right_edge() + 18, scale(0) + 4}, "0", "quiet");
    }
    draw_capacity(all, scale);

    std::vector<Point> line;
    for (std::size_t index = 0; index < all.size(); ++index) {
      const Balance& balance = all[index];
      if (index > 0) bend(line, all[index - 1], balance, scale);
      line.push_back({middle(balance.call), y(balance.before)});
      line.push_back({middle(balance.call), y(balance.right)});
    }
    const double x = middle(last.call);
    const double end = right_edge();
    line.push_back({end, y(last.right)});
    if (gap > 0) {
      svg_.rect({x, std::min(y(last.right), y(last.limiter))}, end - x, std::abs(y(last.right) - y(last.limiter)),
                "gap");
      svg_.lines({{x, y(last.before)}, {x, y(last.limiter)}, {end, y(last.limiter)}}, "limiter-line");
    }
    svg_.lines(line, "model-line");
    for (std::size_t index = 0; index < all.size(); ++index) values(all, index, scale);
    if (gap > 0) what_the_gap_is(last, {x + 10, (y(last.right) + y(last.limiter)) / 2 + 4.5});
    legend(scale.top + plot_height + 46, gap > 0, !scale.inside(capacity_at(last.call)));
    sheet_.bottom = scale.top + plot_height + 62;
  }

  double capacity_at(std::size_t call) const {
    return static_cast<double>(found_.history.scenario.plan_of(calls_[call]).capacity.whole);
  }

  /// Each call has its own; the last one's is named.
  void draw_capacity(const std::vector<Balance>& all, const Scale& scale) {
    for (const Balance& balance : all) {
      const double capacity = capacity_at(balance.call);
      if (!scale.inside(capacity)) continue;
      const double x = middle(balance.call);
      const bool last = &balance == &all.back();
      svg_.line({x - column_ / 2, scale(capacity)}, {x + column_ / 2 + (last ? 12 : 0), scale(capacity)},
                "rule entitled");
      if (!last) continue;
      const std::string label = fmt::format("capacity {:.0f}", capacity);
      svg_.text({right_edge() + 18, scale(capacity) + 4}, label.size() <= 14 ? label : label.substr(9), "quiet");
    }
  }

  /// All values, zero and the capacity, or where the gap would be too thin to see then, what is near it.
  Scale scale_of(const std::vector<Balance>& all, double gap) const {
    const Balance& last = all.back();
    double low = std::min(0.0, std::min(last.right, last.limiter).convert_to<double>());
    double high = capacity_at(last.call);
    for (const Balance& balance : all) {
      low = std::min({low, balance.before.convert_to<double>(), balance.right.convert_to<double>()});
      high = std::max({high, balance.before.convert_to<double>(), static_cast<double>(balance.told.value_or(0))});
    }
    const double top = sheet_.bottom + 26;
    if (gap == 0 || gap / (high - low) * plot_height > 24) return {low, high, top, plot_height};
    const double below = std::min(last.right, last.limiter).convert_to<double>();
    return {below - gap, below + 3 * gap, top, plot_height};
  }

  /// What came back since the call before: straight, and level once the bucket is full.
  void bend(std::vector<Point>& line, const Balance& from, const Balance& to, const Scale& scale) const {
    const double start = middle(from.call);
    const double end = middle(to.call);
    const model::Plan& plan = found_.history.scenario.plan_of(calls_[from.call]);
    const double before = to.before.convert_to<double>();
    const double after = from.right.convert_to<double>();
    // A window begins anew, and a limit changes, at one instant.
    if (found_.verdict.expected[to.call].tokens.empty() || calls_[from.call].plan != calls_[to.call].plan) {
      line.push_back({(start + end) / 2, scale(after)});
      line.push_back({(start + end) / 2, scale(before)});
      return;
    }
    double elapsed = 0;
    for (std::size_t call = from.call + 1; call <= to.call; ++call)
      elapsed += static_cast<double>(calls_[call].advance_us);
    const double earned = elapsed * static_cast<double>(plan.refill.whole) / static_cast<double>(plan.period_us.whole);
    const auto capacity = static_cast<double>(plan.capacity.whole);
    if (earned > 0 && after + earned > capacity && before == capacity)
      line.push_back({start + (end - start) * (capacity - after) / earned, scale(capacity)});
  }

  void values(const std::vector<Balance>& all, std::size_t index, const Scale& scale) {
    const Balance& balance = all[index];
    const double x = middle(balance.call);
    const auto y = [&](const Rational& tokens) { return scale(tokens.convert_to<double>()); };
    const bool falls = index > 0 && balance.before < all[index - 1].right;
    const bool part = balance.right != balance.limiter;
    svg_.dot({x, y(balance.before)}, 4, "dot model");
    svg_.text({x - 8, y(balance.before) + (falls ? 18 : -7)}, show_tokens(balance.before), "code model right");
    if (balance.right != balance.before || part) {
      const bool above = part && balance.right > balance.limiter;
      svg_.dot({x, y(balance.right)}, 4, "dot model");
      svg_.text({x + 8, y(balance.right) + (above ? -7 : 18)}, show_tokens(balance.right), "code model");
    }
    if (part) {
      const bool below = balance.limiter < balance.right;
      svg_.dot({x, y(balance.limiter)}, 4, "dot bad");
      svg_.text({x + 8, y(balance.limiter) + (below ? 18 : -7)}, show_tokens(balance.limiter), "code bad");
    }
    if (balance.told && *balance.told != found_.verdict.expected[balance.call].decision.remaining) {
      const double at = scale(static_cast<double>(*balance.told));
      svg_.line({x, y(balance.right)}, {x, at}, "limiter-line");
      svg_.dot({x, at}, 5, "dot told");
      svg_.text({x + 10, at + 4}, fmt::format("told {} left", *balance.told), "bad");
    }
  }

  void what_the_gap_is(const Balance& last, Point at) {
    const bool too_many = last.limiter < last.right;
    const Rational gap = too_many ? last.right - last.limiter : last.limiter - last.right;
    svg_.text(at, fmt::format("{} {}", show_tokens(gap), too_many ? "too many" : "withheld"), "bad strong");
  }

  void legend(double y, bool gap, bool zoomed) {
    svg_.line({lanes_left, y - 4}, {lanes_left + 28, y - 4}, "model-line");
    svg_.text({lanes_left + 36, y}, "model: what is right", "quiet");
    if (!gap) return;
    if (zoomed)
      svg_.text({lanes_left + 390, y}, "the gap is drawn large: what is far from it stands at the edge", "quiet");
    svg_.line({lanes_left + 190, y - 4}, {lanes_left + 218, y - 4}, "limiter-line");
    svg_.text({lanes_left + 226, y}, "limiter: by what it gave", "quiet");
  }

  static constexpr double plot_height = 150;

  Sheet& sheet_;
  Svg& svg_;
  const Counterexample& found_;
  const std::vector<TimedCall>& calls_;
  std::size_t shown_;
  double column_;
  std::size_t letters_;
  int tenants_ = 1;
  double clock_lane_ = 0;
  double limiter_lane_ = 0;
  double model_lane_ = 0;
};

}  // namespace

void draw_calls(Sheet& sheet, const Counterexample& found) {
  Calls{sheet, found}.draw();
}

}  // namespace weir::gate
