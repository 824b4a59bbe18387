#include "proptests/harness/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <utility>

#include "proptests/harness/error.h"

namespace weir::harness {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// hiredis moves what it has not yet parsed to the front of its buffer after each KiB, so it is fed small pieces.
constexpr std::size_t read_size = 16 * 1024;

void append_header(std::string& wire, char kind, std::size_t length) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), length).ptr;
  wire += kind;
  wire.append(digits.begin(), end);
  wire += "\r\n";
}

void append_command(std::string& wire, const Command& command) {
  append_header(wire, '*', command.size());
  for (const std::string& word : command) {
    append_header(wire, '$', word.size());
    wire += word;
    wire += "\r\n";
  }
}

// hiredis parses, and builds our Reply in place: the root stands in the connection (the reader's
// private data), every other element in the array that its parent has already made room for.
Reply* place_of(const redisReadTask* task) {
  if (task->parent == nullptr) return &(*static_cast<Reply*>(task->privdata) = Reply{});
  return &static_cast<Reply*>(task->parent->obj)->elements[static_cast<std::size_t>(task->idx)];
}

void* create_string(const redisReadTask* task, char* text, std::size_t length) {
  Reply* reply = place_of(task);
  reply->kind = task->type == REDIS_REPLY_ERROR    ? Reply::Kind::error
                : task->type == REDIS_REPLY_STATUS ? Reply::Kind::status
                                                   : Reply::Kind::string;
  reply->text.assign(text, length);
  return reply;
}

void* create_array(const redisReadTask* task, int length) {
  Reply* reply = place_of(task);
  reply->kind = Reply::Kind::array;
  reply->elements.resize(static_cast<std::size_t>(length));
  return reply;
}

void* create_integer(const redisReadTask* task, long long value) {
  Reply* reply = place_of(task);
  reply->kind = Reply::Kind::integer;
  reply->integer = value;
  return reply;
}

void* create_nil(const redisReadTask* task) {
  return place_of(task);
}

void free_nothing(void*) {}

redisReplyObjectFunctions builders{create_string, create_array, create_integer, create_nil, free_nothing};

struct FreeReader {
  void operator()(redisReader* reader) const { redisReaderFree(reader); }
};

}  // namespace

struct Connection::Impl {
  Impl(const std::string& socket_path, milliseconds patience)
      : reader{redisReaderCreateWithFunctions(&builders)}, deadline{patience} {
    reader->privdata = &incoming;
    connect(socket_path);
  }
  ~Impl() { close(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void connect(const std::string& socket_path) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    if (socket_path.size() >= sizeof address.sun_path) {
      fail(fmt::format("the socket path {} is longer than {} bytes", socket_path, sizeof address.sun_path - 1));
    }
    std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
    socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) fail(fmt::format("no socket: {}", std::strerror(errno)));
    // Connecting to a unix socket blocks only while the server's backlog is full, for as long as a send may.
    const timeval patience{.tv_sec = deadline.count() / 1000, .tv_usec = deadline.count() % 1000 * 1000};
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      fail(fmt::format("cannot connect to {}: {}", socket_path, std::strerror(errno)));
    }
    ::fcntl(socket, F_SETFL, O_NONBLOCK);
  }

  void close() noexcept {
    if (socket >= 0) ::close(std::exchange(socket, -1));
  }

  [[noreturn]] void fail(const std::string& why) {
    close();
    throw NoReply{why};
  }

  void require_alive() {
    if (socket < 0) throw NoReply{"this connection got no reply earlier, and is dead since"};
  }

  [[nodiscard]] bool has_unsent() const { return sent < unsent.size(); }

  void write_some() {
    const ssize_t count = ::send(socket, unsent.data() + sent, unsent.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      fail(fmt::format("the server ended the connection: {}", std::strerror(errno)));
    }
    if (count > 0) sent += static_cast<std::size_t>(count);
    if (!has_unsent()) {
      unsent.clear();
      sent = 0;
    }
  }

  void read_some() {
    std::array<char, read_size> piece;
    const ssize_t count = ::recv(socket, piece.data(), piece.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) fail(fmt::format("the server ended the connection: {}", std::strerror(errno)));
    if (count == 0) fail("the server ended the connection");
    redisReaderFeed(reader.get(), piece.data(), static_cast<std::size_t>(count));
    while (true) {
      void* root = nullptr;
      if (redisReaderGetReply(reader.get(), &root) != REDIS_OK) {
        fail(fmt::format("the server's reply cannot be read: {}", reader->errstr));
      }
      if (root == nullptr) return;
      arrived.push_back(std::move(incoming));
    }
  }

  // Waits until the server takes or sends something, and lets it.
  void exchange() {
    const auto give_up = steady_clock::now() + deadline;
    pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
    if (has_unsent()) ready.events |= POLLOUT;
    int events = 0;
    do {
      const auto left = std::chrono::ceil<milliseconds>(give_up - steady_clock::now());
      events = left.count() > 0 ? ::poll(&ready, 1, static_cast<int>(left.count())) : 0;
    } while (events < 0 && errno == EINTR);
    if (events == 0) fail(fmt::format("no reply within {} ms", deadline.count()));
    if ((ready.revents & POLLOUT) != 0) write_some();
    if ((ready.revents & ~POLLOUT) != 0) read_some();
  }

  void send(std::span<const Command> commands) {
    require_alive();
    for (const Command& command : commands) append_command(unsent, command);
    if (has_unsent()) write_some();
    while (has_unsent()) exchange();
  }

  std::vector<Reply> receive(std::size_t count) {
    require_alive();
    while (arrived.size() < count) exchange();
    const auto end = arrived.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<Reply> replies{std::make_move_iterator(arrived.begin()), std::make_move_iterator(end)};
    arrived.erase(arrived.begin(), end);
    return replies;
  }

  int socket = -1;
  Reply incoming;
  std::unique_ptr<redisReader, FreeReader> reader;
  milliseconds deadline;
  std::string unsent;
  std::size_t sent = 0;
  std::vector<Reply> arrived;
};

Connection::Connection(const std::string& socket_path, milliseconds deadline)
    : impl_{std::make_unique<Impl>(socket_path, deadline)} {}
Connection::~Connection() = default;
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;

Reply Connection::run(const Command& command) {
  return std::move(pipeline(std::span{&command, 1}).front());
}

std::vector<Reply> Connection::pipeline(std::span<const Command> commands) {
  send(commands);
  return receive(commands.size());
}

void Connection::send(std::span<const Command> commands) {
  impl_->send(commands);
}

std::vector<Reply> Connection::receive(std::size_t count) {
  return impl_->receive(count);
}

}  // namespace weir::harness
