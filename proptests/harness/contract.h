#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weir::harness {

/// A closed range of whole numbers.
struct Range {
  std::int64_t least;
  std::int64_t most;
  bool operator==(const Range&) const = default;
};

/// What a contract file says of a limiter, checked field by field (DESIGN, section 5).
/// An unknown field is an error that names the nearest known one.
struct Contract {
  enum class Promises { token_bucket, fixed_window };
  enum class Unit { seconds, milliseconds, microseconds };

  std::filesystem::path file;  // as given
  std::string name;
  Promises promises = Promises::token_bucket;
  Unit resolution = Unit::milliseconds;         // of the times it replies
  Unit clock = Unit::microseconds;              // of the clock it reads: time is moved in whole ones
  std::optional<std::filesystem::path> script;  // as written in the contract, relative to its file
  std::string script_text;                      // empty: the limiter is `take`, a client program
  bool has_state = false;                       // state = "weir": stored bytes are held against the model's
  bool replies_retry = false;                   // set by LuaHost: an answer was seen that tells it (of a denial)
  bool replies_remaining = false;
  bool replies_reset = false;

  // The domain that is claimed: what is generated lies in it.
  // All in [1, 2^51]; where `limits` leaves one out, this.
  Range capacity{1, 1000};
  Range refill{1, 1000};
  Range period_us{1'000'000, 1'000'000};
  Range cost{1, 1000};

  /// What CI expects of a limiter known to be bad: promise -> "fail". Empty: passes everything.
  std::map<std::string, std::string> expect;

  /// Where each field stands, for annotations: "name" or "limits.capacity" -> line (1-based); "" is the
  /// table itself. A function stands where it is written.
  std::map<std::string, int> lines;
};

}  // namespace weir::harness
