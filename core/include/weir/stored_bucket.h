#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "weir/bucket.h"
#include "weir/limit.h"
#include "weir/result.h"
#include "weir/time.h"

namespace weir {

/// A bucket as Redis keeps it, and until when: the value under a key of lua/token_bucket.lua.
/// Thread safety: a value.
struct StoredBucket {
  Bucket bucket;
  std::int64_t until_ms;  // the key's expiry, absolute, ms; 0 to 2^53

  bool operator==(const StoredBucket&) const = default;
};

/// Why bytes are no bucket of ours.
struct StoredBucketError {
  std::size_t size;          // of what was given, bytes
  const char* wrong_number;  // the first that is out of range or no whole number; null: the size is wrong

  bool operator==(const StoredBucketError&) const = default;
  [[nodiscard]] std::string message() const;
};

/// debt, as_of (µs), refill, period (µs), until (ms): five IEEE doubles, little-endian, which is
/// struct.pack("<ddddd", ...) in Lua. Exact: nothing in a bucket passes 2^53.
inline constexpr std::size_t stored_bucket_size = 40;

[[nodiscard]] constexpr std::array<char, stored_bucket_size> encode(const StoredBucket& stored) noexcept;
[[nodiscard]] constexpr Result<StoredBucket, StoredBucketError> decode(std::string_view bytes) noexcept;

// Bodies.

namespace detail {

constexpr void put_number(char* at, std::int64_t number) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(number));
  for (unsigned byte = 0; byte < 8; ++byte) at[byte] = static_cast<char>(bits >> (8 * byte) & 0xff);
}

[[nodiscard]] constexpr double get_number(const char* at) noexcept {
  std::uint64_t bits = 0;
  for (unsigned byte = 0; byte < 8; ++byte) bits |= std::uint64_t{static_cast<unsigned char>(at[byte])} << (8 * byte);
  return std::bit_cast<double>(bits);
}

}  // namespace detail

constexpr std::array<char, stored_bucket_size> encode(const StoredBucket& stored) noexcept {
  std::array<char, stored_bucket_size> bytes{};
  const std::int64_t numbers[] = {stored.bucket.debt, stored.bucket.as_of.time_since_epoch().count(),
                                  stored.bucket.refill, stored.bucket.period_us, stored.until_ms};
  char* at = bytes.data();
  for (const std::int64_t number : numbers) {
    detail::put_number(at, number);
    at += 8;
  }
  return bytes;
}

constexpr Result<StoredBucket, StoredBucketError> decode(std::string_view bytes) noexcept {
  if (bytes.size() != stored_bucket_size) return Unexpected{StoredBucketError{bytes.size(), nullptr}};
  constexpr std::int64_t latest = max_instant.time_since_epoch().count();
  struct Field {
    const char* name;
    std::int64_t least;
    std::int64_t most;
  };
  constexpr Field fields[] = {{"debt", 0, 2 * max_quantity},
                              {"as_of", 0, latest},
                              {"refill", 1, max_quantity},
                              {"period", 1, max_quantity},
                              {"until", 0, latest}};
  std::int64_t numbers[std::size(fields)] = {};
  for (std::size_t k = 0; k < std::size(fields); ++k) {
    const double number = detail::get_number(bytes.data() + 8 * k);
    const bool in_range =
        number >= static_cast<double>(fields[k].least) && number <= static_cast<double>(fields[k].most);  // not NaN
    if (in_range) numbers[k] = static_cast<std::int64_t>(number);
    if (!in_range || static_cast<double>(numbers[k]) != number) {
      return Unexpected{StoredBucketError{bytes.size(), fields[k].name}};
    }
  }
  return StoredBucket{.bucket = {numbers[0], Instant{Micros{numbers[1]}}, numbers[2], numbers[3]},
                      .until_ms = numbers[4]};
}

inline std::string StoredBucketError::message() const {
  if (wrong_number == nullptr) {
    return "the value has " + std::to_string(size) + " bytes; a bucket of weir has " +
           std::to_string(stored_bucket_size);
  }
  return std::string{"the value has the size of a bucket of weir, but its "} + wrong_number +
         " is not a whole number in range";
}

}  // namespace weir
