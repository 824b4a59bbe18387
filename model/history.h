#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/scenario.h"
#include "weir/bucket.h"
#include "weir/time.h"

namespace weir::model {

/// What was seen of one call: the answer, and what the keyspace looked like right after it.
struct Observation {
  enum class Kind : std::uint8_t {
    answered,
    error,      // the limiter replied an error
    malformed,  // its reply could not be read as the contract says
    no_reply,   // it did not end in time
  };

  Kind kind = Kind::answered;
  std::string text;  // what was replied, for people

  // Kind answered. What the limiter does not tell is empty.
  bool allowed = false;
  bool told_never = false;
  std::optional<std::int64_t> retry_after_us;
  std::optional<std::int64_t> remaining;
  std::optional<std::int64_t> reset_after_us;

  // The keyspace.
  std::int64_t writes = 0;                      // write events of the call: 0 leaves no trace
  std::int64_t strays = 0;                      // of those, on keys that were not declared
  bool present = false;                         // one of the call's keys is there afterwards
  bool endless = false;                         // one of them has no expiry
  std::optional<std::int64_t> first_expiry_ms;  // the earliest among them, absolute
  std::optional<std::int64_t> last_expiry_ms;   // the latest
  std::optional<Bucket> stored;                 // the bucket they hold, where the contract says how to read it
  std::optional<std::int64_t> stored_until_ms;  // and the expiry written in it
  bool unreadable = false;                      // the contract says how, and it could not be read

  bool operator==(const Observation&) const = default;
};

/// A scenario and what came of it, call by call.
struct History {
  Scenario scenario;
  std::vector<Observation> seen;  // as many as calls, or fewer where a call did not end
};

}  // namespace weir::model
