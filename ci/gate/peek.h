#pragma once

#include <string>

namespace weir::gate {

struct PeekOptions {
  std::string key;
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string socket;
};

/// Prints what a stored bucket says, in words. 0, or throws EnvironmentError (no server) or ContractError
/// (the key holds no bucket).
int run_peek(const PeekOptions& options);

}  // namespace weir::gate
