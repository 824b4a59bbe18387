#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proptests/harness/connection.h"
#include "weir/time.h"

namespace weir::harness {

/// What a fresh server's clock says, held, until it is set: 2023-11-14 22:13:20 UTC.
inline constexpr Instant initial_instant{std::chrono::seconds{1'700'000'000}};

/// An unmodified redis-server of our own, whose clock we own: private directory, unix socket, no
/// port, no persistence, own process group; server, socket and directory are gone with this process
/// whatever ends it, a SIGKILL included (private_directory.h says how).
///
/// Binary: `WEIR_REDIS_SERVER` (a wrapper script should exec it), else `redis-server` on the PATH, else
/// Debian's redis-check-rdb under that name (the same program; redis-tools ships it without a service).
/// Construction runs the clock probe and throws EnvironmentError unless the server obeys to the
/// microsecond. Keys expire when they are touched, never by themselves, so a run is deterministic.
/// Thread safety: connect() and the clock from any thread; the rest from one thread at a time.
class Server {
 public:
  struct Options {
    std::chrono::milliseconds deadline{5000};            // of each command on connections from connect()
    std::chrono::milliseconds busy_after{500};           // busy-reply-threshold
    std::optional<std::filesystem::path> append_only{};  // a directory to keep an AOF in (bench); none by default
    std::vector<std::string> arguments{};                // further words of its command line: {"--maxmemory", "10mb"}
  };

  explicit Server(Options options);
  Server() : Server(Options{}) {}
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] Connection connect() const;
  [[nodiscard]] Connection connect(std::chrono::milliseconds deadline) const;

  /// Sets the clock that the server reads, in one store to the shared page: no round trip. Backward too.
  void set_clock(Instant now);
  [[nodiscard]] Instant clock() const;

  /// Every reading of the clock moves it on by this much; 0 holds it. (In-script time of Redis 7.0.)
  /// The server reads it for its own sake too, several times a command, so only what happens inside
  /// one script is exact.
  void set_creep(Micros per_reading);

  [[nodiscard]] const std::string& socket_path() const;
  [[nodiscard]] const std::filesystem::path& directory() const;
  [[nodiscard]] int pid() const;
  [[nodiscard]] const std::string& version() const;  // "7.0.15"
  [[nodiscard]] bool running() const;

  /// SIGKILL and wait. `start_again` starts it on the same socket with the same clock page; empty,
  /// unless it keeps an AOF. Connections made before are dead.
  void kill();
  void start_again();

  /// A script runs past `busy_after`: SCRIPT KILL, or SIGKILL and start_again() where that does not
  /// help (the script has written, or never comes back to where it could be stopped). The keyspace
  /// is to be taken as lost.
  void recover_from_busy_script();

  /// CPU time of the server process so far, user and system. Throws EnvironmentError if it has ended.
  [[nodiscard]] std::chrono::microseconds cpu_time() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Commands of the module that is loaded into the server (proptests/harness/clock/weir_clock.c), so
/// that time steps and looks at the keyspace go down the pipeline with everything else.
///
///   WEIR.CLOCK us             sets the clock; replies OK
///   WEIR.LOOK  key [key ...]  replies {writes, strays, then for each key: bytes, expiry}:
///       writes   keyspace events of writes since the last WEIR.LOOK (set, hset, expire, del, ...; not
///                lazy expiry): 0 means that no key was written. SET with PX is two. FLUSHALL and
///                PUBLISH raise none
///       strays   how many of those events touched a key other than those named here
///       bytes    nil if the key is absent; the raw value of a string; the DUMP payload of anything else
///       expiry   absolute, ms; -1 none, -2 absent
///   WEIR.LOAD  us [name is_string bytes expiry ...]
///                         empties the database, stores these keys, and then sets the clock; replies OK.
///                         `bytes` is what WEIR.DUMP says, `expiry` absolute, ms, -1 none. A key that is
///                         past its expiry is stored too, and gone when it is touched
///   WEIR.DUMP             replies {name, is_string, bytes, expiry, ...} of every key that is alive;
///                         those that have expired are deleted. Both forget the writes that WEIR.LOOK counts
[[nodiscard]] Command clock_command(Instant now);
[[nodiscard]] Command look_command(const std::vector<std::string>& keys);

struct KeyState {
  std::optional<std::string> bytes;       // empty: absent
  std::optional<std::int64_t> expiry_ms;  // empty: none (or absent)
  bool operator==(const KeyState&) const = default;
};
struct Look {
  std::int64_t writes;
  std::int64_t strays;
  std::vector<KeyState> keys;
};

/// Throws EnvironmentError if it is no answer of WEIR.LOOK.
[[nodiscard]] Look parse_look(const Reply& reply);

}  // namespace weir::harness
