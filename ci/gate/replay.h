#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "ci/gate/check.h"
#include "ci/gate/repro.h"

namespace weir::gate {

/// What a replayed counterexample came to.
struct Replayed {
  Repro repro;
  harness::Contract contract;
  bool failed = false;   // it failed as the file says
  std::string other;     // it failed in another way: which
  Counterexample found;  // as it is now
  std::string redis_version;

  /// 0 where it did what the file's `expect` says, 1 where it did not, 2 where two runs differ.
  [[nodiscard]] int exit_code() const;
};

/// Runs a repro file again, twice. `contract` overrides the one that the file names.
[[nodiscard]] Replayed replay(const std::filesystem::path& file, const std::optional<std::filesystem::path>& contract);

}  // namespace weir::gate
