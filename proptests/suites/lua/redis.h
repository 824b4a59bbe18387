#pragma once

#include <rapidcheck.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "lua/scripts.h"
#include "proptests/harness/connection.h"
#include "proptests/harness/reply.h"
#include "proptests/harness/server.h"

namespace weir::suites {

/// RapidCheck shrinks greedily and without end, and here each try is a run on a server: its first
/// failure is printed as it is. A global fixture, made before RapidCheck reads RC_PARAMS.
struct NoShrinking {
  NoShrinking() {
    const char* given = std::getenv("RC_PARAMS");
    setenv("RC_PARAMS", (std::string{given == nullptr ? "" : given} + " noshrink=1").c_str(), 1);
  }
};

/// A private server, a connection to it, and the token bucket loaded there.
struct Redis {
  harness::Server server;
  harness::Connection connection = server.connect();
  std::string sha = connection.run({"SCRIPT", "LOAD", std::string{lua::token_bucket}}).text;

  /// One call of the script; the words are ARGV.
  [[nodiscard]] harness::Command take(const std::string& key, std::initializer_list<std::string> words) const {
    harness::Command command{"EVALSHA", sha, "1", key};
    command.insert(command.end(), words);
    return command;
  }

  /// Empty, and no write counted.
  void clear() {
    connection.run({"FLUSHALL"});
    look("none");
  }

  harness::Look look(const std::string& key) {
    return harness::parse_look(connection.run(harness::look_command({key})));
  }
};

}  // namespace weir::suites
