#include <fmt/format.h>

#include <algorithm>

#include "ci/gate/picture_parts.h"
#include "model/verdict.h"

namespace weir::gate {
namespace {

using harness::Answer;
using harness::Step;

/// What an attempt came to with this step; empty where it goes on.
std::string outcome_of(const Step& step) {
  if (!step.outcome) return "";
  const auto* answer = std::get_if<Answer>(&*step.outcome);
  return answer == nullptr ? "ERROR" : answer->allowed ? "ADMITTED" : "denied";
}

class Steps {
 public:
  Steps(Sheet& sheet, const Counterexample& found)
      : sheet_(sheet),
        svg_(sheet.svg),
        found_(found),
        steps_(found.run.history.steps),
        column_(column_width(steps_.size(), 168, 230)),
        letters_(static_cast<std::size_t>((column_ - 8) / 7.3)) {}

  void draw() {
    sheet_.width = right_edge() + lanes_right;
    place_lanes();
    std::int64_t admitted = 0;
    for (std::size_t index = 0; index < steps_.size(); ++index) {
      if (outcome_of(steps_[index]) == "ADMITTED") ++admitted;
      admitted_.push_back(admitted);
      draw_step(index);
    }
    draw_passing();
    draw_admitted();
  }

 private:
  double left(std::size_t step) const { return lanes_left + static_cast<double>(step) * column_; }
  double middle(std::size_t step) const { return left(step) + column_ / 2; }
  double right_edge() const { return left(steps_.size()); }
  bool has_arc() const { return found_.passing && found_.passing->step < steps_.size(); }

  void place_lanes() {
    std::size_t most_words = 1;
    for (const Step& step : steps_) most_words = std::max(most_words, said(step).size());
    const double above = 20 + Svg::line_height * static_cast<double>(most_words);
    head_ = sheet_.bottom + (has_arc() ? 58 : 16);
    double y = head_ + 22;
    for (int client = 0; client < found_.interleaving->clients; ++client) {
      client_lanes_.push_back(y + above);
      y += above + 44;
    }
    redis_lane_ = y + 34;
    clock_lane_ = redis_lane_ + 48;
    plot_top_ = clock_lane_ + 44;

    const std::size_t failing = found_.failure.call;
    if (failing < steps_.size())
      svg_.rect({left(failing), head_ - 16}, column_, plot_top_ + plot_height + 26 - head_, "column", 6);
    const auto lane = [&](double at, const std::string& name, std::string_view style) {
      svg_.line({lanes_left, at}, {right_edge(), at}, style);
      svg_.text({lanes_left - 14, at + 4}, name, "right strong");
    };
    for (std::size_t client = 0; client < client_lanes_.size(); ++client)
      lane(client_lanes_[client], "client " + harness::client_name(static_cast<int>(client)), "lane");
    lane(redis_lane_, "Redis", "redis");
    lane(clock_lane_, "clock", "lane");
    const bool held = std::none_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.slot.is_clock(); });
    if (held)
      svg_.text({lanes_left, clock_lane_ + 19}, "held: every step is at the same instant, so nothing refills", "quiet");
  }

  /// The commands of a step, a line each.
  std::vector<std::string> said(const Step& step) const {
    constexpr std::size_t most = 5;
    std::vector<std::string> lines;
    for (const harness::Command& command : step.commands) lines.push_back(fitting(harness::show(command)));
    if (lines.size() > most) {
      const std::size_t left_out = lines.size() - most + 1;
      lines.resize(most - 1);
      lines.push_back(fmt::format("and {} more", left_out));
    }
    return lines;
  }

  std::string fitting(const std::string& text) const {
    const auto lines = wrapped(text, letters_, 1);
    return lines.empty() ? "" : lines.front();
  }

  void draw_step(std::size_t index) {
    const Step& step = steps_[index];
    const bool fails = index == found_.failure.call;
    const double x = middle(index);
    const std::string outcome = outcome_of(step);
    std::string hover = fmt::format("step {}", index + 1);
    if (!step.slot.is_clock()) hover += ": client " + harness::client_name(step.slot.client);
    for (const harness::Command& command : step.commands) hover += '\n' + harness::show(command);
    if (!step.commands.empty()) hover += "\n-> " + harness::show(step.reply);
    if (!outcome.empty()) hover += '\n' + outcome;

    svg_.open(fmt::format("s{}", index + 1), hover);
    svg_.rect({left(index) + 2, head_ - 14}, column_ - 4, redis_lane_ + 28 - head_, "hit", 6);
    svg_.text({x, head_}, fmt::format("step {}", index + 1), "middle strong");
    if (fails && outcome == "ADMITTED") svg_.text({x, head_ + 16}, "must be refused", "middle bad strong");
    svg_.dot({x, clock_lane_}, 4, "dot");
    if (step.slot.is_clock()) {
      const std::int64_t tick = step.slot.tick.count();
      svg_.text({x, clock_lane_ - 10}, (tick < 0 ? "back " : "+") + model::show_time(std::abs(tick)),
                "middle odd strong");
    } else {
      round_trip(step, outcome, fails, x);
    }
    svg_.close();
  }

  void round_trip(const Step& step, const std::string& outcome, bool fails, double x) {
    const double lane = client_lanes_[static_cast<std::size_t>(step.slot.client)];
    const double half = column_ / 2 - 16;
    const std::vector<std::string> words = said(step);
    svg_.texts({x, lane - 14 - Svg::line_height * (static_cast<double>(words.size()) - 1)}, words, "middle code");
    const std::string_view look = outcome == "ADMITTED" ? (fails ? "bad" : "good") : outcome.empty() ? "" : "no";
    if (!step.commands.empty()) {
      svg_.line({x - half + 4, lane}, {x - 6, redis_lane_ - 7}, "arrow");
      svg_.line({x + 6, redis_lane_ - 7}, {x + half - 4, lane + 6}, "arrow");
      svg_.dot({x, redis_lane_}, 6, "dot");
      const auto reply = wrapped(harness::show(step.reply), letters_ - 8, 1);
      if (step.commands.size() == 1 && !reply.empty()) svg_.text({x, lane + 22}, reply.front(), "middle code");
    }
    svg_.rect({x - half, lane - 5}, 2 * half, 10, fmt::format("bar {}", look), 5);
    if (!outcome.empty())
      svg_.text({x, lane + (step.commands.size() == 1 ? 38 : 22)}, outcome,
                fmt::format("middle strong {}", outcome == "ADMITTED" ? look : "quiet"));
  }

  /// The step that makes the difference, and where it would have to run.
  void draw_passing() {
    if (!has_arc()) return;
    const PassingMove& passing = *found_.passing;
    const double from = middle(passing.step);
    const double to = passing.before ? left(passing.beside) : left(passing.beside + 1);
    const double y = head_ - 18;
    svg_.path(fmt::format("M{:.1f} {:.1f} C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", from, y, from, y - 24, to,
                          y - 24, to, y + 2),
              "odd-arrow moved");
    svg_.rect({from - 32, head_ - 15}, 64, 22, "ring", 11);
    const std::string words =
        fmt::format("the pivot: run {} step {}, it passes ({})", passing.before ? "before" : "after",
                    passing.beside + 1, harness::show(passing.schedule));
    svg_.text({std::max((from + to) / 2, lanes_left + 3.4 * static_cast<double>(words.size())), y - 24}, words,
              "middle odd strong");
  }

  void draw_admitted() {
    const std::int64_t entitled = found_.interleaving->plan.capacity.whole;
    const std::int64_t reached = admitted_.empty() ? 0 : admitted_.back();
    const Scale scale{0, static_cast<double>(std::max(entitled, reached)), plot_top_ + 12, plot_height - 12};
    const auto y = [&](std::int64_t count) { return scale(static_cast<double>(count)); };
    const double end = right_edge();

    svg_.text({lanes_left - 14, plot_top_ + plot_height / 2 + 4}, "admitted", "right strong");
    svg_.line({lanes_left, y(0)}, {end, y(0)}, "rule");
    std::vector<Point> line{{lanes_left, y(0)}};
    std::int64_t before = 0;
    for (std::size_t index = 0; index < steps_.size(); ++index) {
      const std::int64_t after = admitted_[index];
      if (after == before) continue;
      const double x = middle(index);
      if (after > entitled) svg_.rect({x, y(after)}, end - x, y(after - 1) - y(after), "gap");
      line.push_back({x, y(before)});
      line.push_back({x, y(after)});
      if (after != reached || after == entitled)
        svg_.text({x + 8, y(after) + 17}, fmt::format("{} admitted", after), "");
      before = after;
    }
    line.push_back({end, y(reached)});
    if (reached < entitled && found_.failure.kind == "wrongly_denied")
      svg_.rect({middle(steps_.size() - 1), y(entitled)}, end - middle(steps_.size() - 1), y(reached) - y(entitled),
                "gap");
    svg_.line({lanes_left, y(entitled)}, {end, y(entitled)}, "model-line");
    svg_.lines(line, "limiter-line");
    svg_.text({end + 8, y(entitled) + 4}, fmt::format("entitled: {}", entitled), "model strong");
    if (reached != entitled) svg_.text({end + 8, y(reached) + 4}, fmt::format("admitted: {}", reached), "bad strong");
    sheet_.bottom = plot_top_ + plot_height + 26;
  }

  static constexpr double plot_height = 110;

  Sheet& sheet_;
  Svg& svg_;
  const Counterexample& found_;
  const std::vector<Step>& steps_;
  double column_;
  std::size_t letters_;
  std::vector<double> client_lanes_;
  std::vector<std::int64_t> admitted_;  // after each step
  double head_ = 0;
  double redis_lane_ = 0;
  double clock_lane_ = 0;
  double plot_top_ = 0;
};

}  // namespace

void draw_steps(Sheet& sheet, const Counterexample& found) {
  Steps{sheet, found}.draw();
}

}  // namespace weir::gate
