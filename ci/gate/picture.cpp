#include "ci/gate/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ci/gate/picture_parts.h"
#include "ci/gate/report.h"

namespace weir::gate {
namespace {

constexpr std::string_view page_style = R"(
:root { color-scheme: light dark; --ink: #1f2328; --quiet: #57606a; --ground: #ffffff; --box: #f6f8fa; --rule: #d0d7de; --bad: #b3161f; --link: #0550ae }
@media screen and (prefers-color-scheme: dark) {
:root { --ink: #f0f6fc; --quiet: #9ea7b1; --ground: #0d1117; --box: #161b22; --rule: #3d444d; --bad: #ff8e86; --link: #79c0ff }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1120px; padding: 24px; color: var(--ink); background: var(--ground);
       font: 15px/1.5 system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif }
h1 { margin: 0 0 4px; font-size: 24px; line-height: 1.25 } h1 b { color: var(--bad) }
p { margin: 4px 0; max-width: 80ch } .why { font-size: 18px } .quiet { color: var(--quiet) }
figure { margin: 20px 0; overflow-x: auto; border: 1px solid var(--rule); border-radius: 8px }
figure svg { display: block }
pre { overflow-x: auto; padding: 12px; background: var(--box); border: 1px solid var(--rule); border-radius: 8px;
      font: 13px/1.4 ui-monospace, 'DejaVu Sans Mono', monospace }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px } dt { color: var(--quiet) }
dd { margin: 0; overflow-wrap: anywhere } code { font: 13px ui-monospace, 'DejaVu Sans Mono', monospace } a { color: var(--link) }
@media print {
@page { margin: 12mm }
body { max-width: none; padding: 0; font-size: 12px; print-color-adjust: exact; -webkit-print-color-adjust: exact }
figure, pre { overflow: visible; break-inside: avoid } pre { white-space: pre-wrap; font-size: 10px } figure svg { max-width: 100%; height: auto }
nav { display: none }
}
)";

std::string name_of(const model::Failure& failure) {
  std::string kind = spaced(failure.kind);
  if (const auto dot = kind.find('.'); dot != std::string::npos) kind.replace(dot, 1, ": ");
  return fmt::format("{}: {}", spaced(std::string{name(failure.promise)}), kind);
}

/// As the terminal prints it, but for the files: a page may be anywhere.
std::string printed(Counterexample found, const harness::Contract& contract) {
  found.file.clear();
  return counterexample_text(found, contract, {});
}

std::string drawn(const Counterexample& found, const harness::Contract& contract, bool headline) {
  const std::string title = fmt::format("FAIL {} ({})", name_of(found.failure), contract.name);
  const std::vector<std::string> why = wrapped(found.failure.why, 100, 3);
  Sheet sheet;
  sheet.bottom = headline ? 60 + Svg::line_height * static_cast<double>(why.size()) : 14;
  if (found.interleaving)
    draw_steps(sheet, found);
  else
    draw_calls(sheet, found);
  if (headline) {
    sheet.width = std::max(sheet.width, 760.0);
    sheet.svg.text({20, 32}, wrapped(title, 74, 1).front(), "head bad");
    sheet.svg.texts({20, 56}, why, "");
  }
  Counterexample anywhere = found;
  anywhere.certified = false;  // a replay does not search, and draws the same
  return sheet.svg.whole(sheet.width, sheet.bottom + 8, title, printed(std::move(anywhere), contract));
}

std::string facts(const Counterexample& found, const harness::Contract& contract, const std::string& redis_version,
                  const std::filesystem::path& repro) {
  std::string text;
  const auto fact = [&](std::string_view term, const std::string& says) {
    text += fmt::format("<dt>{}</dt><dd>{}</dd>\n", term, says);
  };
  fact("limiter", fmt::format("{} <code>{}</code>", escaped(contract.name), escaped(contract.file.string())));
  fact("promise", fmt::format("{}: {}", spaced(std::string{name(found.failure.promise)}),
                              escaped(promise_text(found.failure.promise))));
  if (found.second_run_differs) {
    fact("verdict", "none: its second run came out differently, so the limiter is not deterministic");
  } else {
    fact("smallest", !found.certified ? "not certified: this run did not search everything smaller"
                     : found.interleaving
                         ? "certified: nothing with fewer clients or calls fails in the scope that was searched"
                         : "certified: nothing with fewer calls fails in the scope that was searched");
  }
  if (found.interleaving) fact("order", escaped(harness::show(found.interleaving->schedule)));
  if (found.passing) fact("passes as", escaped(harness::show(found.passing->schedule)));
  fact("replay", fmt::format("<code>weir replay {}</code>", escaped(repro.string())));
  fact("seen on", fmt::format("Redis {}, its clock set by weir", escaped(redis_version)));
  return text;
}

}  // namespace

double column_width(std::size_t columns, double least, double most) {
  constexpr double page = 1070;
  const double room = (page - lanes_left - lanes_right) / static_cast<double>(std::max<std::size_t>(columns, 1));
  return std::clamp(room, least, most);
}

std::string picture_svg(const Counterexample& found, const harness::Contract& contract) {
  return drawn(found, contract, true);
}

std::string picture_page(const Counterexample& found, const harness::Contract& contract,
                         const std::string& redis_version, const std::filesystem::path& repro) {
  const std::size_t count = found.interleaving ? found.run.history.steps.size() : found.history.seen.size();
  std::string links;
  for (std::size_t index = 1; index <= count; ++index) links += fmt::format(" <a href=\"#s{0}\">{0}</a>", index);
  const std::string name = escaped(name_of(found.failure));
  return fmt::format(
             R"(<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width"/>
<title>{} ({})</title>
)",
             name, escaped(contract.name)) +
         "<style>" + std::string{page_style} + "</style>\n</head>\n<body>\n" +
         fmt::format("<h1><b>FAIL</b> {} <span class=\"quiet\">{}</span></h1>\n<p class=\"why\">{}</p>\n", name,
                     escaped(contract.name), escaped(found.failure.why)) +
         "<figure>\n" + drawn(found, contract, false) + "</figure>\n" +
         fmt::format("<nav><p class=\"quiet\">{}{}</p></nav>\n", found.interleaving ? "step" : "call", links) +
         fmt::format("<dl>\n{}</dl>\n", facts(found, contract, redis_version, repro)) +
         fmt::format("<pre>{}</pre>\n</body>\n</html>\n", escaped(printed(found, contract)));
}

}  // namespace weir::gate
