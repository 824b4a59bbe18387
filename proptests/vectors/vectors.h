#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/bucket.h"
#include "weir/decision.h"
#include "weir/limit.h"

/// Test vectors: what a token bucket of any language and any store must answer, written by the model
/// (model/bucket.h). README.md beside this says how one is held to them.
namespace weir::vectors {

/// Raised with every change by which a reading of the file as it was would fail.
inline constexpr int version = 1;

/// A limit as it is given: not reduced.
struct Given {
  std::int64_t capacity;
  std::int64_t refill;
  std::int64_t period_us;

  [[nodiscard]] Limit limit() const;  // throws std::invalid_argument where it is none
  bool operator==(const Given&) const = default;
};

/// One request, and what comes of it.
struct Step {
  Given limit;
  std::int64_t now_us;
  std::int64_t cost;

  Decision decision;
  bool writes;                  // the store must be written; otherwise it must not be
  std::optional<Bucket> state;  // what is stored afterwards
  std::int64_t alive_until_us;  // if written: it is stored at least up to this instant, 2^53 at most

  bool operator==(const Step&) const = default;
};

/// A sequence of requests to one bucket, which is absent at first.
struct Vector {
  std::string name;
  std::string why;
  std::vector<Step> steps;
};

/// All of them, by the model; the same in every run.
[[nodiscard]] std::vector<Vector> by_the_model();

/// As the file has them: JSON, a line a step.
[[nodiscard]] std::string write(const std::vector<Vector>& vectors);

/// The vectors of a file. Throws std::invalid_argument, which says what is wrong and where, for text
/// that is no such file, of another version, or not as it was written (the checksum).
[[nodiscard]] std::vector<Vector> read(std::string_view text);

/// What is wrong with a file by the model, in a sentence that names the vector, the step and the field; or, where
/// every answer is right, that it is not what `write(by_the_model())` writes. Empty: nothing.
[[nodiscard]] std::optional<std::string> fault_in(std::string_view text);

/// `weir vectors [--check FILE]`: prints the vectors, or compares. Returns the exit code: 0, or 1
/// where the file is not right.
int run(const std::string& file_to_check);

}  // namespace weir::vectors
