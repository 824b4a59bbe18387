#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proptests/harness/reply.h"

namespace weir::harness {

/// One connection to the private server over its unix socket, with a deadline on everything: it
/// bounds each wait for the server to take or send anything, and starts anew with each byte that
/// moves. Not thread safe: one thread at a time. Throws NoReply; after that the connection is dead,
/// so that no reply is ever taken for another command's.
/// Replies nest at most seven arrays deep (hiredis 0.14); a deeper one is a NoReply that says so.
class Connection {
 public:
  /// Throws NoReply if no server listens there, or takes us in, within the deadline.
  Connection(const std::string& socket_path, std::chrono::milliseconds deadline);
  ~Connection();
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  /// One round trip.
  Reply run(const Command& command);

  /// All down one write, all replies read back, in order: one round trip however many they are.
  /// (Writes and reads are interleaved where the socket's buffers would fill.)
  std::vector<Reply> pipeline(std::span<const Command> commands);

  /// The two halves of `pipeline`, for callers that work while the server does. `send` returns when
  /// the last byte is on its way; `receive` waits for `count` replies, oldest first.
  void send(std::span<const Command> commands);
  std::vector<Reply> receive(std::size_t count);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::harness
