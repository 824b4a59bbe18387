#pragma once

#include <filesystem>
#include <string>

#include "proptests/harness/private_directory.h"

namespace weir::harness {

/// A redis-server that we can own.
struct ServerBinary {
  std::filesystem::path file;  // absolute
  std::string version;         // "7.0.15"
};

/// `WEIR_REDIS_SERVER`, else `redis-server` on the PATH, else Debian's redis-check-rdb there, which is
/// the same program under another name (a server when it is called "redis-server").
/// Throws EnvironmentError: none, not executable, not a Redis, or older than 7.0.0.
[[nodiscard]] ServerBinary find_server_binary(const PrivateDirectory& directory);

}  // namespace weir::harness
