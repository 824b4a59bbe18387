#include "proptests/harness/server.h"

#include "proptests/harness/error.h"

namespace weir::harness {

struct Server::Impl {};

Server::Server(Options) {
  throw EnvironmentError{"not built yet"};
}
Server::~Server() = default;
Connection Server::connect() const {
  throw EnvironmentError{"not built yet"};
}
Connection Server::connect(std::chrono::milliseconds) const {
  throw EnvironmentError{"not built yet"};
}
void Server::set_clock(Instant) {}
Instant Server::clock() const {
  return {};
}
void Server::set_creep(Micros) {}
const std::string& Server::socket_path() const {
  throw EnvironmentError{"not built yet"};
}
const std::filesystem::path& Server::directory() const {
  throw EnvironmentError{"not built yet"};
}
int Server::pid() const {
  return 0;
}
const std::string& Server::version() const {
  throw EnvironmentError{"not built yet"};
}
bool Server::running() const {
  return false;
}
void Server::kill() {}
void Server::start_again() {}
void Server::recover_from_busy_script() {}
std::chrono::microseconds Server::cpu_time() const {
  return {};
}

}  // namespace weir::harness
