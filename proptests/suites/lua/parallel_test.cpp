#include <sys/resource.h>

#include <rapidcheck/boost_test.h>
#include <atomic>
#include <barrier>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <thread>
#include <vector>

#include "proptests/suites/lua/redis.h"

namespace weir {
namespace {

using harness::Command;
using harness::Connection;
using harness::Reply;

constexpr int threads = 16;
constexpr int takes = 1000;
constexpr int capacity = 100;

/// How many calls were under way at once, at most.
class Overlap {
 public:
  void begin() {
    const int now = ++under_way_;
    for (int most = most_; now > most && !most_.compare_exchange_weak(most, now);) {
    }
  }
  void end() { --under_way_; }
  [[nodiscard]] int most() const { return most_; }

 private:
  std::atomic<int> under_way_{0};
  std::atomic<int> most_{0};
};

/// One round trip on each of a thread's connections, all of them under way at once.
std::vector<Reply> on_each(std::vector<Connection*>& connections, const std::vector<Command>& commands) {
  std::vector<Reply> last;
  for (Connection* connection : connections) connection->send(commands);
  for (Connection* connection : connections) last.push_back(connection->receive(commands.size()).back());
  return last;
}

/// Each of `takes` connections takes once, from `threads` threads that start together; how many were admitted.
/// `take` says it for one thread's connections.
int admitted_in_parallel(std::vector<Connection>& connections, Overlap& overlap,
                         const std::function<int(std::vector<Connection*>&)>& take) {
  std::barrier start{threads};
  std::atomic<int> admitted{0};
  std::vector<std::thread> running;
  for (std::size_t id = 0; id < threads; ++id) {
    running.emplace_back([&, id] {
      std::vector<Connection*> mine;
      for (std::size_t k = id; k < connections.size(); k += threads) mine.push_back(&connections[k]);
      start.arrive_and_wait();
      for (std::size_t k = 0; k < mine.size(); ++k) overlap.begin();
      admitted += take(mine);
      for (std::size_t k = 0; k < mine.size(); ++k) overlap.end();
    });
  }
  for (auto& thread : running) thread.join();
  return admitted;
}

/// A descriptor a connection, here and in the server, which inherits the limit.
void allow_descriptors() {
  rlimit limit{};
  BOOST_TEST_REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4096);
  BOOST_TEST_REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  BOOST_TEST_REQUIRE(limit.rlim_cur > takes + 100U);
}

BOOST_AUTO_TEST_SUITE(parallel_suite)

BOOST_AUTO_TEST_CASE(a_thousand_takes_at_once_get_a_hundred_from_the_script_and_more_from_the_incidents_client) {
  allow_descriptors();
  suites::Redis redis;
  std::vector<Connection> connections;
  for (int k = 0; k < takes; ++k) connections.push_back(redis.server.connect());

  for (int round = 0; round < 5; ++round) {
    redis.clear();
    Overlap overlap;
    const int admitted = admitted_in_parallel(connections, overlap, [&](std::vector<Connection*>& mine) {
      const std::vector<Command> call{redis.take("rl:{tenant}", {std::to_string(capacity), "1", "1"})};
      int allowed = 0;
      for (const Reply& reply : on_each(mine, call)) allowed += reply.elements.at(0).integer == 1;
      return allowed;
    });
    BOOST_TEST(admitted == capacity);
    BOOST_TEST(overlap.most() > 1);
    BOOST_TEST_MESSAGE("script: " << admitted << " admitted, " << overlap.most() << " under way at once");

    // GET, compare here, then MULTI INCR EXPIRE EXEC: each round trip atomic, the decision between them not.
    redis.clear();
    Overlap then;
    const int leaked = admitted_in_parallel(connections, then, [&](std::vector<Connection*>& mine) {
      const std::string key = "rl:{tenant}:1700000000";
      std::vector<Connection*> decided;
      const auto counts = on_each(mine, {{"GET", key}});
      for (std::size_t k = 0; k < mine.size(); ++k) {
        if (counts[k].text.empty() || std::stoi(counts[k].text) < capacity) decided.push_back(mine[k]);
      }
      on_each(decided, {{"MULTI"}, {"INCR", key}, {"EXPIRE", key, "2"}, {"EXEC"}});
      return static_cast<int>(decided.size());
    });
    BOOST_TEST(leaked > capacity);
    BOOST_TEST(then.most() > 1);
    BOOST_TEST_MESSAGE("incident's client: " << leaked << " admitted, " << then.most() << " under way at once");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
