#pragma once

#include <string>
#include <vector>

#include "ci/gate/check.h"

namespace weir::gate {

/// The result for programs: JSON with a schema version (ci/README.md says what each field means).
[[nodiscard]] std::string result_json(const std::vector<Card>& cards, const Effort& effort, int exit_code);

/// JUnit XML: a suite a limiter, a case a promise; `file` and `line` are the user's own.
[[nodiscard]] std::string junit_xml(const std::vector<Card>& cards);

}  // namespace weir::gate
