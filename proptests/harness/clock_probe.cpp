#include "proptests/harness/clock_probe.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "proptests/harness/error.h"
#include "proptests/harness/server.h"

namespace weir::harness {
namespace {

using namespace std::chrono_literals;

const Command time_command{"TIME"};
constexpr int steps = 30;

void require_time(const Reply& reply, Instant expected, const std::string& server) {
  const std::int64_t us = expected.time_since_epoch().count();
  const std::string told = show(reply);
  if (told == fmt::format("{{\"{}\", \"{}\"}}", us / 1'000'000, us % 1'000'000)) return;
  throw EnvironmentError{fmt::format(
      "{} does not obey the clock it is given: set to {} µs, TIME answers {}. It must be started so that LD_PRELOAD "
      "reaches it (not by a static or setuid binary, nor by a wrapper that clears it), and read time by gettimeofday",
      server, us, told)};
}

// A server that counts time by the processor's own counter tells ours only now and then.
void require_system_clock(const std::string& info, const std::string& server) {
  constexpr std::string_view field = "monotonic_clock:";
  const std::size_t start = info.find(field);
  const std::string clock = start == std::string::npos
                                ? ""
                                : info.substr(start + field.size(), info.find('\r', start) - start - field.size());
  if (clock == "POSIX clock_gettime") return;
  throw EnvironmentError{fmt::format(
      "{} keeps time by \"{}\", which cannot be held; it must be built without USE_PROCESSOR_CLOCK, so that "
      "INFO says monotonic_clock:POSIX clock_gettime",
      server, clock)};
}

}  // namespace

void probe_clock(Connection& connection, ClockPage& page, const std::string& server) {
  require_system_clock(connection.run({"INFO", "server"}).text, server);

  const Instant start = page.now();
  const auto require_that_it_obeys = [&](Instant now) {
    page.set(now);
    require_time(connection.run(time_command), now, server);
  };
  require_that_it_obeys(start);
  for (int step = 1; step <= steps; ++step) require_that_it_obeys(start + step * 1us);
  require_that_it_obeys(start - 1h);

  // Steps in rapid succession: a server that reuses a reading for some commands is caught here.
  std::vector<Command> commands;
  for (int step = 1; step <= steps; ++step) {
    commands.push_back(clock_command(start - step * 1us));
    commands.push_back(time_command);
  }
  const std::vector<Reply> replies = connection.pipeline(commands);
  for (int step = 1; step <= steps; ++step) {
    require_time(replies[static_cast<std::size_t>(2 * step - 1)], start - step * 1us, server);
  }
  page.set(start);
}

}  // namespace weir::harness
