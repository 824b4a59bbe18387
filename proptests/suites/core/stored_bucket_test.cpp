#include "weir/stored_bucket.h"

#include <rapidcheck/boost_test.h>
#include <boost/test/unit_test.hpp>
#include <string>

namespace weir {
namespace {

constexpr std::string_view view(const std::array<char, stored_bucket_size>& bytes) {
  return {bytes.data(), bytes.size()};
}

constexpr StoredBucket largest{
    .bucket = {2 * max_quantity, max_instant, max_quantity, max_quantity},
    .until_ms = max_instant.time_since_epoch().count(),
};
static_assert(decode(view(encode(largest))).value() == largest);

BOOST_AUTO_TEST_SUITE(stored_bucket_suite)

BOOST_AUTO_TEST_CASE(the_bytes_are_five_doubles_little_endian) {
  const auto bytes = encode({.bucket = {1, Instant{Micros{2}}, 3, 4}, .until_ms = 5});
  const std::string expected{
      "\0\0\0\0\0\0\xf0\x3f"
      "\0\0\0\0\0\0\0\x40"
      "\0\0\0\0\0\0\x08\x40"
      "\0\0\0\0\0\0\x10\x40"
      "\0\0\0\0\0\0\x14\x40",
      40};
  BOOST_TEST((view(bytes) == expected));
}

BOOST_AUTO_TEST_CASE(what_is_no_bucket_is_refused_by_its_size_or_its_first_wrong_number) {
  BOOST_TEST(decode("hello").error().message() == "the value has 5 bytes; a bucket of weir has 40");
  BOOST_TEST(decode(std::string(41, 'x')).error().size == 41U);
  BOOST_TEST(decode(std::string(40, 'x')).error().message() ==
             "the value has the size of a bucket of weir, but its debt is not a whole number in range");

  const auto with = [](std::size_t field, double number) {
    auto bytes = encode({.bucket = {1, Instant{Micros{2}}, 3, 4}, .until_ms = 5});
    const auto bits = std::bit_cast<std::array<char, 8>>(number);
    std::copy(bits.begin(), bits.end(), bytes.begin() + static_cast<std::ptrdiff_t>(8 * field));
    const auto decoded = decode(view(bytes));
    return decoded ? std::string{"fine"} : std::string{decoded.error().wrong_number};
  };
  const char* const names[] = {"debt", "as_of", "refill", "period", "until"};
  for (std::size_t field = 0; field < 5; ++field) {
    BOOST_TEST(with(field, 7) == "fine");
    for (const double wrong : {-1.0, 0.5, 1e300, -1e300, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity(), 0x1p53 + 2}) {
      BOOST_TEST(with(field, wrong) == names[field]);
    }
  }
  BOOST_TEST(with(2, 0) == "refill");
  BOOST_TEST(with(3, 0) == "period");
  BOOST_TEST(with(0, 0) == "fine");
}

RC_BOOST_PROP(decoding_gives_back_what_was_encoded, ()) {
  const auto below = [](std::int64_t most) { return *rc::gen::inRange<std::int64_t>(0, most) + 1; };
  const StoredBucket stored{.bucket = {below(2 * max_quantity), Instant{Micros{below(2 * max_quantity)}},
                                       below(max_quantity), below(max_quantity)},
                            .until_ms = below(2 * max_quantity)};
  RC_ASSERT(decode(view(encode(stored))).value() == stored);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
