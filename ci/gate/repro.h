#pragma once

#include <filesystem>
#include <string>

#include "ci/gate/check.h"

namespace weir::gate {

/// A counterexample as a file: readable JSON with explicit values, the same bytes for the same bug.
struct Repro {
  std::filesystem::path contract;  // as it was given to the run that found it
  std::string promise;
  std::string kind;
  bool expect_fail = true;                   // "expect": "fail" while the bug is open, "pass" once it is fixed
  std::string script_sha1;                   // of the script it was found in; empty for a client program
  model::Scenario scenario;                  // calls one after the other, or
  std::optional<Interleaving> interleaving;  // clients that overlap
};

/// Writes the file into `directory` (made if needed), whole or not at all, and returns its path:
/// `<contract>-<promise>-<kind>-<hash>.json`. Throws EnvironmentError.
std::filesystem::path write_repro(const std::filesystem::path& directory, const Counterexample& found,
                                  const Card& card);

/// Throws ContractError that names the file, the field, and what was expected there.
[[nodiscard]] Repro read_repro(const std::filesystem::path& file);

/// Writes `text` to `file`, whole or not at all: beside it first, then renamed; straight into what is no file.
/// Throws EnvironmentError.
void write_whole(const std::filesystem::path& file, const std::string& text);

[[nodiscard]] std::string read_whole(const std::filesystem::path& file);

}  // namespace weir::gate
