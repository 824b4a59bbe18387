#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "ci/gate/check.h"
#include "ci/gate/svg.h"

/// What the two kinds of picture are made of.
namespace weir::gate {

/// How far a picture has come: what is drawn next begins at `bottom`.
struct Sheet {
  Svg svg;
  double width = 0;
  double bottom = 0;
};

/// Calls one after the other: clock, callers, answers, and the tokens beneath.
void draw_calls(Sheet& sheet, const Counterexample& found);

/// Clients that overlap: a lane each, Redis, the clock, and what was admitted beneath.
void draw_steps(Sheet& sheet, const Counterexample& found);

// Lanes have their names at the left edge; columns are as wide as leaves room for `columns` of them.
inline constexpr double lanes_left = 104;
inline constexpr double lanes_right = 150;  // what is said of the last column stands to its right
[[nodiscard]] double column_width(std::size_t columns, double least, double most);

/// The upright axis of a plot: where a value stands, in pixels from the top. What is beyond it stands at its edge.
struct Scale {
  double low;
  double high;
  double top;
  double height;
  [[nodiscard]] bool inside(double value) const { return value >= low && value <= high; }
  [[nodiscard]] double operator()(double value) const {
    return top + (high - std::clamp(value, low, high)) / (high - low) * height;
  }
};

}  // namespace weir::gate
