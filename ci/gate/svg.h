#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::gate {

/// Text as XML takes it: < > & and quotes by name; what is no UTF-8, or no character that XML may hold, is '?'.
[[nodiscard]] std::string escaped(std::string_view text);

/// Lines of at most `most` characters (at least 4), broken at spaces where there are any, and at most
/// `lines` of them: what is left out ends in "...".
[[nodiscard]] std::vector<std::string> wrapped(const std::string& text, std::size_t most, std::size_t lines);

struct Point {
  double x;
  double y;
};

/// A drawing, as elements in the order in which they cover each other. Lengths are pixels, y points down.
/// `style` names classes of the style sheet in svg.cpp.
class Svg {
 public:
  void rect(Point corner, double width, double height, std::string_view style, double radius = 0);
  void line(Point from, Point to, std::string_view style);
  void lines(const std::vector<Point>& points, std::string_view style);
  void path(std::string_view data, std::string_view style);
  void dot(Point middle, double radius, std::string_view style);
  /// The anchor is part of the style: "left" (where nothing is said), "middle", "right".
  void text(Point base, std::string_view text, std::string_view style);
  void texts(Point first_base, const std::vector<std::string>& lines, std::string_view style);

  /// What follows, up to `close`, is one thing: a link can point at it, and a pointer on it shows `hover`.
  void open(std::string_view id, std::string_view hover);
  void close();

  /// The file: with its own style, dark or light as the reader's screen is; `description` is for those
  /// who do not see it.
  [[nodiscard]] std::string whole(double width, double height, std::string_view title,
                                  std::string_view description) const;

  static constexpr double line_height = 15;

 private:
  std::string body_;
};

}  // namespace weir::gate
