#include "ci/gate/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace weir::gate {
namespace {

// Nothing is said by colour alone: each mark has its word beside it.
constexpr std::string_view style_sheet = R"(
.weir { font: 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif }
.weir text { fill: #1f2328 } .weir .code { font: 12px ui-monospace, 'DejaVu Sans Mono', monospace }
.weir .middle { text-anchor: middle } .weir .right { text-anchor: end }
.weir .strong { font-weight: 600 } .weir .head { font-size: 17px; font-weight: 600 }
.weir text.quiet { fill: #57606a } .weir text.bad { fill: #b3161f } .weir text.good { fill: #116329 }
.weir text.odd { fill: #8a4600 } .weir text.model { fill: #0550ae }
.weir .ground { fill: #ffffff } .weir .hit { fill: transparent }
.weir .lane { stroke: #c4cad1; stroke-width: 1.5 } .weir .redis { stroke: #8c959f; stroke-width: 7; stroke-linecap: round }
.weir .box { fill: #f6f8fa; stroke: #8c959f } .weir .column { fill: #ffebe9 }
.weir .bar { fill: #54708f } .weir .bar.good { fill: #1a7f37 } .weir .bar.bad { fill: #cf222e } .weir .bar.no { fill: #8c959f }
.weir .dot { fill: #1f2328; stroke: #ffffff; stroke-width: 1.5 } .weir .dot.good { fill: #1a7f37 } .weir .dot.bad { fill: #cf222e }
.weir .dot.no { fill: #6e7781 } .weir .dot.model { fill: #0969da } .weir .dot.told { fill: #ffffff; stroke: #cf222e; stroke-width: 2 }
.weir .arrow { stroke: #57606a; stroke-width: 1.3; fill: none; marker-end: url(#tip) }
.weir .odd-arrow { stroke: #9a5b00; stroke-width: 1.8; fill: none; marker-end: url(#odd-tip) } .weir .moved { stroke-dasharray: 5 3 }
.weir .ring { fill: none; stroke: #9a5b00; stroke-width: 2 }
.weir .tip { fill: #57606a } .weir .odd-tip { fill: #9a5b00 }
.weir .rule { stroke: #c4cad1; stroke-width: 1 } .weir .entitled { stroke-dasharray: 6 4; stroke: #57606a }
.weir .model-line { stroke: #0969da; stroke-width: 2.5; fill: none } .weir .limiter-line { stroke: #cf222e; stroke-width: 2.5; fill: none; stroke-dasharray: 7 3 }
.weir .gap { fill: #cf222e; fill-opacity: .22 }
.weir g:target .hit { stroke: #0969da; stroke-width: 2 }
@media screen and (prefers-color-scheme: dark) {
.weir text { fill: #f0f6fc } .weir text.quiet { fill: #9ea7b1 } .weir text.bad { fill: #ff8e86 } .weir text.good { fill: #56d364 }
.weir text.odd { fill: #e3b341 } .weir text.model { fill: #79c0ff }
.weir .ground { fill: #0d1117 } .weir .lane { stroke: #3d444d } .weir .redis { stroke: #656c76 }
.weir .box { fill: #161b22; stroke: #656c76 } .weir .column { fill: #3c1418 }
.weir .bar { fill: #7d9bc0 } .weir .bar.good { fill: #3fb950 } .weir .bar.bad { fill: #f85149 } .weir .bar.no { fill: #656c76 }
.weir .dot { fill: #f0f6fc; stroke: #0d1117 } .weir .dot.good { fill: #3fb950 } .weir .dot.bad { fill: #f85149 }
.weir .dot.no { fill: #9ea7b1 } .weir .dot.model { fill: #58a6ff } .weir .dot.told { fill: #0d1117; stroke: #f85149 }
.weir .arrow { stroke: #9ea7b1 } .weir .tip { fill: #9ea7b1 } .weir .odd-arrow, .weir .ring { stroke: #d29922 } .weir .odd-tip { fill: #d29922 }
.weir .rule { stroke: #3d444d } .weir .entitled { stroke: #9ea7b1 }
.weir .model-line { stroke: #58a6ff } .weir .limiter-line { stroke: #f85149 } .weir .gap { fill: #f85149; fill-opacity: .3 }
}
)";

constexpr std::string_view tips =
    R"(<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker>)"
    R"(<marker id="odd-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto"><path class="odd-tip" d="M0 0 8 4 0 8z"/></marker></defs>)"
    "\n";

/// The character that begins at `text[0]`, as bytes; 0 if there is none that XML may hold.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 || text[0] == '\n' || text[0] == '\t' ? 1 : 0;
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  std::uint32_t code = byte(0) & (0xffU >> (length + 1));
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte(index) & 0xc0U) != 0x80) return 0;
    code = code << 6U | (byte(index) & 0x3fU);
  }
  constexpr std::uint32_t least[]{0, 0, 0x80, 0x800, 0x10000};
  const bool legal =
      code >= least[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) && code != 0xfffe && code != 0xffff;
  return legal ? length : 0;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character(text);
    switch (text.front()) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += length == 0 ? "?" : text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t most, std::size_t lines) {
  std::vector<std::string> out;
  std::string_view rest{text};
  while (!rest.empty()) {
    if (rest.size() <= most) {
      out.emplace_back(rest);
      break;
    }
    if (out.size() + 1 == lines) {
      out.push_back(std::string{rest.substr(0, most - 3)} + "...");
      break;
    }
    const std::size_t space = rest.substr(0, most + 1).rfind(' ');
    const std::size_t end = space == std::string_view::npos || space == 0 ? most : space;
    out.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  return out;
}

void Svg::rect(Point corner, double width, double height, std::string_view style, double radius) {
  body_ += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}")", corner.x, corner.y,
                       width, height, style);
  if (radius > 0) body_ += fmt::format(R"( rx="{:.1f}")", radius);
  body_ += "/>\n";
}

void Svg::line(Point from, Point to, std::string_view style) {
  lines({from, to}, style);
}

void Svg::lines(const std::vector<Point>& points, std::string_view style) {
  std::string data;
  for (const Point& point : points) data += fmt::format("{}{:.1f} {:.1f}", data.empty() ? "M" : " L", point.x, point.y);
  path(data, style);
}

void Svg::path(std::string_view data, std::string_view style) {
  body_ += fmt::format("<path d=\"{}\" class=\"{}\"/>\n", data, style);
}

void Svg::dot(Point middle, double radius, std::string_view style) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" class=\"{}\"/>\n", middle.x, middle.y, radius,
                       style);
}

void Svg::text(Point base, std::string_view text, std::string_view style) {
  body_ +=
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", base.x, base.y, style, escaped(text));
}

void Svg::texts(Point first_base, const std::vector<std::string>& lines, std::string_view style) {
  for (const std::string& line : lines) {
    text(first_base, line, style);
    first_base.y += line_height;
  }
}

void Svg::open(std::string_view id, std::string_view hover) {
  body_ += fmt::format("<g id=\"{}\"><title>{}</title>\n", id, escaped(hover));
}

void Svg::close() {
  body_ += "</g>\n";
}

std::string Svg::whole(double width, double height, std::string_view title, std::string_view description) const {
  return fmt::format(
             R"(<svg xmlns="http://www.w3.org/2000/svg" class="weir" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}" role="img" aria-labelledby="title desc">)"
             "\n<title id=\"title\">{2}</title>\n<desc id=\"desc\">{3}</desc>\n",
             width, height, escaped(title), escaped(description)) +
         "<style>" + std::string{style_sheet} + "</style>\n" + std::string{tips} +
         fmt::format("<rect class=\"ground\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", width, height) + body_ +
         "</svg>\n";
}

}  // namespace weir::gate
