#include "proptests/harness/schedule.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <limits>
#include <numeric>
#include <random>

namespace weir::harness {
namespace {

/// Uniform in [0, count): std::uniform_int_distribution is another function in each standard library.
std::uint64_t below(std::uint64_t count, std::mt19937_64& random) {
  assert(count > 0);
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t fair = most - most % count;
  std::uint64_t drawn = random();
  while (drawn >= fair) drawn = random();
  return drawn % count;
}

}  // namespace

std::string client_name(int client) {
  assert(client >= 0);
  std::string name;
  for (int rest = client + 1; rest > 0; rest = (rest - 1) / 26) name += static_cast<char>('A' + (rest - 1) % 26);
  return {name.rbegin(), name.rend()};
}

std::string show(const Schedule& schedule) {
  std::string text;
  for (const Slot& slot : schedule) {
    if (!text.empty()) text += ' ';
    if (!slot.is_clock())
      text += client_name(slot.client);
    else
      text += (slot.tick.count() >= 0 ? "+" : "") + std::to_string(slot.tick.count()) + "us";
  }
  return text;
}

Result<Schedule, std::string> parse_schedule(std::string_view text) {
  Schedule schedule;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
    if (text.empty()) return schedule;
    const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
    text.remove_prefix(word.size());
    const auto refused = [&] {
      return Unexpected{"\"" + std::string{word} +
                        "\" is no slot of a schedule: it must be a client (A, B, ...) or a step of the clock, like "
                        "+1000us or -5us"};
    };

    if (word[0] == '+' || word[0] == '-') {
      const char* const end = word.data() + word.size();
      std::int64_t micros = 0;
      // from_chars takes a minus and no plus.
      const auto [rest, error] = std::from_chars(word.data() + (word[0] == '+' ? 1 : 0), end, micros);
      const bool twice_signed = word.size() > 1 && word[0] == '+' && word[1] == '-';
      if (error != std::errc{} || twice_signed || std::string_view(rest, end) != "us") return refused();
      schedule.push_back(Slot::of(Micros{micros}));
      continue;
    }
    constexpr std::size_t letters_most = 3;
    const bool letters = std::all_of(word.begin(), word.end(), [](char c) { return 'A' <= c && c <= 'Z'; });
    if (!letters || word.size() > letters_most) return refused();
    const int client =
        std::accumulate(word.begin(), word.end(), 0, [](int sum, char c) { return sum * 26 + (c - 'A' + 1); });
    schedule.push_back(Slot::of(client - 1));
  }
}

Schedule uniform_schedule(std::span<const int> steps, std::span<const Micros> ticks, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::vector<int> left(steps.begin(), steps.end());
  std::size_t ticked = 0;
  auto total = static_cast<std::uint64_t>(std::accumulate(left.begin(), left.end(), std::int64_t{0})) + ticks.size();
  Schedule schedule;
  schedule.reserve(total);
  for (; total > 0; --total) {
    std::uint64_t drawn = below(total, random);
    int client = 0;
    for (; client < static_cast<int>(left.size()); ++client) {
      int& of_client = left[static_cast<std::size_t>(client)];
      if (drawn < static_cast<std::uint64_t>(of_client)) {
        --of_client;
        schedule.push_back(Slot::of(client));
        break;
      }
      drawn -= static_cast<std::uint64_t>(of_client);
    }
    if (client == static_cast<int>(left.size())) schedule.push_back(Slot::of(ticks[ticked++]));
  }
  return schedule;
}

}  // namespace weir::harness
