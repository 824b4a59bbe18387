#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/time.h"

namespace weir::harness {

/// One choice of who moves next: a client by one step, or the clock by so much (back too).
struct Slot {
  static constexpr int clock = -1;

  int client = 0;  // 0 is A; `clock` is the clock
  Micros tick{0};  // of the clock; 0 of a client

  [[nodiscard]] static constexpr Slot of(int client) noexcept { return {client, Micros{0}}; }
  [[nodiscard]] static constexpr Slot of(Micros tick) noexcept { return {clock, tick}; }
  [[nodiscard]] constexpr bool is_clock() const noexcept { return client == clock; }
  bool operator==(const Slot&) const = default;
};

/// An interleaving as data. A slot of a client that has nothing left to do is skipped.
using Schedule = std::vector<Slot>;

/// A, B, ... Z, AA, AB, ... for 0, 1, ...
[[nodiscard]] std::string client_name(int client);

/// "A B +1000000us A B"; what `parse_schedule` reads.
[[nodiscard]] std::string show(const Schedule& schedule);

/// The error is a sentence that names the word and what would be right.
[[nodiscard]] Result<Schedule, std::string> parse_schedule(std::string_view text);

/// One interleaving of `steps[i]` steps of client i and of the ticks in their order, each as likely as
/// any other: next is each with a probability proportional to what it has left. The same on every
/// machine for one seed. Where the steps are more than a client turns out to take, the rest is skipped
/// and what remains is no longer exactly uniform.
/// Source: SURW (ASPLOS 2025), with the step counts known instead of estimated.
[[nodiscard]] Schedule uniform_schedule(std::span<const int> steps, std::span<const Micros> ticks, std::uint64_t seed);

}  // namespace weir::harness
