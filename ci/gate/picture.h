#pragma once

#include <filesystem>
#include <string>

#include "ci/gate/check.h"

namespace weir::gate {

/// A counterexample as one HTML file: its picture, what the terminal prints, how to see it again, what it was
/// seen on. Well-formed XML too; no script, nothing from elsewhere; dark or light as the reader's screen is.
[[nodiscard]] std::string picture_page(const Counterexample& found, const harness::Contract& contract,
                                       const std::string& redis_version, const std::filesystem::path& repro);

/// The picture alone, with its headline, as an SVG file. The same for one counterexample wherever it was found.
[[nodiscard]] std::string picture_svg(const Counterexample& found, const harness::Contract& contract);

}  // namespace weir::gate
