#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "proptests/vectors/vectors.h"

namespace weir::suites {

/// The checked-in file, as it is.
[[nodiscard]] inline std::string vectors_text() {
  std::ifstream file{WEIR_VECTORS_FILE, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

[[nodiscard]] inline const std::vector<vectors::Vector>& vectors_in_file() {
  static const std::vector<vectors::Vector> all = vectors::read(vectors_text());
  return all;
}

}  // namespace weir::suites
