#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proptests/harness/reply.h"

namespace weir::harness {

/// One connection to the private server over its unix socket, with a deadline on everything.
/// Not thread safe: one thread at a time. Throws NoReply; after that the connection is dead, so that
/// no reply is ever taken for another command's.
class Connection {
 public:
  Connection(const std::string& socket_path, std::chrono::milliseconds deadline);
  ~Connection();
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  /// One round trip.
  Reply run(const Command& command);

  /// All down one write, all replies read back, in order: one round trip however many they are.
  /// (Writes and reads are interleaved where the socket's buffers would fill.)
  std::vector<Reply> pipeline(std::span<const Command> commands);

  /// The two halves of `pipeline`, for callers that work while the server does.
  void send(std::span<const Command> commands);
  std::vector<Reply> receive(std::size_t count);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::harness
