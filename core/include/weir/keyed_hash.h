#pragma once

#include <sys/random.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir {

/// 128 bits of a key: one half tells keys apart, the other says where to look.
struct KeyDigest {
  std::uint64_t tag;
  std::uint64_t place;

  bool operator==(const KeyDigest&) const = default;
};

/// A hash that whoever picks the keys cannot aim: without the secret, which each process draws for
/// itself, two keys collide no more often than chance has it.
///
/// By the processor's AES where it has it: CMAC's chaining (a block that is full and one that was
/// padded are told apart by a key each) over four rounds of AES with a key of their own a round, a
/// map whose differentials are proven small. Elsewhere SipHash-1-3 with 128 bits of output. Neither is a
/// message authentication code: never show anybody a digest, or the order of anything by it.
/// Thread safety: immutable once made.
class KeyedHash {
 public:
  using Secret = std::array<std::uint64_t, 14>;

  /// With a secret from the kernel. Throws std::system_error where it has none to give.
  [[nodiscard]] static KeyedHash random() {
    Secret secret;
    if (::getrandom(secret.data(), sizeof secret, 0) != sizeof secret) {
      throw std::system_error(errno, std::generic_category(), "no secret for hashing keys");
    }
    return KeyedHash{secret};
  }

  explicit KeyedHash(const Secret& secret) noexcept : secret_(secret), by_aes_(has_aes()) {}

  [[nodiscard]] KeyDigest operator()(std::string_view key) const noexcept {
#if defined(__x86_64__)
    if (by_aes_) [[likely]]
      return aes(key);
#endif
    return sip(key);
  }

  /// The two ways, each for itself; for tests.
  [[nodiscard]] KeyDigest sip(std::string_view key) const noexcept {
    return siphash<1, 3>(key, secret_[0], secret_[1]);
  }
#if defined(__x86_64__)
  [[nodiscard]] __attribute__((target("aes,sse4.1,ssse3"))) KeyDigest aes(std::string_view key) const noexcept;
#endif

  /// SipHash by its authors' paper, 128 bits of output, `Compress` and `Finish` rounds.
  template <int Compress, int Finish>
  [[nodiscard]] static KeyDigest siphash(std::string_view key, std::uint64_t k0, std::uint64_t k1) noexcept;

 private:
  [[nodiscard]] static bool has_aes() noexcept {
#if defined(__x86_64__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1");
#else
    return false;
#endif
  }

  alignas(16) Secret secret_;
  bool by_aes_;
};

// Bodies.

namespace detail {

/// Up to 7 bytes as a little-endian number, reading no byte outside.
[[nodiscard]] inline std::uint64_t tail_number(const char* bytes, std::size_t count) noexcept {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < count; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return number;
}

[[nodiscard]] inline std::uint64_t number_at(const char* bytes) noexcept {
  std::uint64_t number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

[[nodiscard]] inline std::uint64_t half_number_at(const char* bytes) noexcept {
  std::uint32_t number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

/// Fewer than 16 bytes, zeros after, in two little-endian halves; no branch a byte.
[[nodiscard]] inline std::array<std::uint64_t, 2> short_block(const char* bytes, std::size_t count) noexcept {
  if (count > 8) return {number_at(bytes), number_at(bytes + count - 8) >> (8 * (16 - count))};
  if (count == 8) return {number_at(bytes), 0};
  if (count >= 4) {
    return {half_number_at(bytes) | (half_number_at(bytes + count - 4) >> (8 * (8 - count)) << 32), 0};
  }
  return {tail_number(bytes, count), 0};
}

}  // namespace detail

template <int Compress, int Finish>
KeyDigest KeyedHash::siphash(std::string_view key, std::uint64_t k0, std::uint64_t k1) noexcept {
  std::uint64_t v0 = 0x736f6d6570736575 ^ k0;
  std::uint64_t v1 = 0x646f72616e646f6d ^ k1 ^ 0xee;
  std::uint64_t v2 = 0x6c7967656e657261 ^ k0;
  std::uint64_t v3 = 0x7465646279746573 ^ k1;
  const auto rounds = [&](int count) {
    for (int round = 0; round < count; ++round) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](std::uint64_t word) {
    v3 ^= word;
    rounds(Compress);
    v0 ^= word;
  };
  std::size_t done = 0;
  for (; key.size() - done >= 8; done += 8) take(detail::number_at(key.data() + done));
  take(detail::tail_number(key.data() + done, key.size() - done) | (std::uint64_t{key.size()} << 56));
  v2 ^= 0xee;
  rounds(Finish);
  const std::uint64_t first = v0 ^ v1 ^ v2 ^ v3;
  v1 ^= 0xdd;
  rounds(Finish);
  return {first, v0 ^ v1 ^ v2 ^ v3};
}

#if defined(__x86_64__)
inline KeyDigest KeyedHash::aes(std::string_view key) const noexcept {
  const auto* secret = reinterpret_cast<const __m128i*>(secret_.data());
  const auto four_rounds = [secret](__m128i block) __attribute__((target("aes,sse4.1,ssse3"), always_inline)) {
    block = _mm_aesenc_si128(block, secret[3]);
    block = _mm_aesenc_si128(block, secret[4]);
    block = _mm_aesenc_si128(block, secret[5]);
    return _mm_aesenc_si128(block, secret[6]);
  };
  const char* bytes = key.data();
  std::size_t left = key.size();
  __m128i chain = secret[0];
  for (; left > 16; bytes += 16, left -= 16) {
    chain = four_rounds(_mm_xor_si128(chain, _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(bytes))));
  }
  if (left == 16) {
    const __m128i last = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(bytes));
    chain = _mm_xor_si128(chain, _mm_xor_si128(last, secret[1]));
  } else {
    auto [low, high] = detail::short_block(bytes, left);
    (left < 8 ? low : high) |= std::uint64_t{0x80} << (8 * (left % 8));
    const __m128i last = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
    chain = _mm_xor_si128(chain, _mm_xor_si128(last, secret[2]));
  }
  chain = four_rounds(chain);
  return {static_cast<std::uint64_t>(_mm_cvtsi128_si64(chain)),
          static_cast<std::uint64_t>(_mm_extract_epi64(chain, 1))};
}
#endif

}  // namespace weir
