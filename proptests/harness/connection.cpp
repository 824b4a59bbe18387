#include "proptests/harness/connection.h"

#include "proptests/harness/error.h"

namespace weir::harness {

struct Connection::Impl {};

Connection::Connection(const std::string&, std::chrono::milliseconds) {
  throw EnvironmentError{"not built yet"};
}
Connection::~Connection() = default;
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;

Reply Connection::run(const Command&) {
  throw EnvironmentError{"not built yet"};
}
std::vector<Reply> Connection::pipeline(std::span<const Command>) {
  throw EnvironmentError{"not built yet"};
}
void Connection::send(std::span<const Command>) {
  throw EnvironmentError{"not built yet"};
}
std::vector<Reply> Connection::receive(std::size_t) {
  throw EnvironmentError{"not built yet"};
}

}  // namespace weir::harness
