#pragma once

#include <stdexcept>
#include <string>

namespace weir::harness {

/// The environment failed, not the limiter: no server, a wrong version, a clock that does not obey,
/// a full disk. Never a verdict; the gate exits 4. The message names the input and what would be right.
struct EnvironmentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What the user gave us is wrong: a contract that cannot be read, a field of the wrong type, a
/// script with a syntax error. The gate exits 3. The message names file, field and what was expected.
struct ContractError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A command did not answer within its deadline, or the connection ended under it.
/// What it means (a script that loops for ever, a killed server) is for the caller to say.
struct NoReply : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace weir::harness
