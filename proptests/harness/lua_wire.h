#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace weir::harness {
struct Call;
struct Reply;
}  // namespace weir::harness

namespace weir::harness::wire {

/// What the host and its Lua process say to each other: one frame a request, one frame an answer.
/// Both ends are this program on this machine, so numbers go as they lie in memory; the point of the
/// format is that a million decisions pass through it.

enum class Request : std::uint8_t { load, arguments, answers, run, resume, forget };

/// Tags of what comes back for one call or one step.
enum class Outcome : std::uint8_t { result, send, refusal };

class Writer {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
  }

  /// A part whose length stands before it, so that a reader can skip it whole.
  template <class Body>
  void part(Body&& body) {
    const std::size_t start = size();
    number(std::uint32_t{0});
    body();
    const auto length = static_cast<std::uint32_t>(size() - start - sizeof(std::uint32_t));
    std::memcpy(bytes_.data() + start, &length, sizeof length);
  }

  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  void cut(std::size_t size) { bytes_.resize(size); }
  void clear() noexcept { bytes_.clear(); }
  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) noexcept : rest_(bytes) {}

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(number<std::uint32_t>()); }
  Reader part() { return Reader{text()}; }

 private:
  std::string_view take(std::size_t size) {
    // The other end is this same program: a short frame is a bug of ours, and nothing to go on from.
    if (rest_.size() < size) std::abort();
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
};

void write(Writer& out, const Call& call);
void write(Writer& out, const Reply& reply);

}  // namespace weir::harness::wire
