#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "proptests/suites/lua/redis.h"
#include "proptests/suites/vectors/vectors_file.h"
#include "weir/stored_bucket.h"

namespace weir {
namespace {

using suites::Redis;

const std::string key = "rl:{tenant}";

std::int64_t in_ms(Micros time) {
  return time.count() / 1000 + (time.count() % 1000 == 0 ? 0 : 1);
}

/// What the script claims: refills up to 2^40, and the years its Redis can be in.
bool claimed(const vectors::Vector& vector) {
  return std::all_of(vector.steps.begin(), vector.steps.end(), [](const vectors::Step& step) {
    return step.limit.refill <= std::int64_t{1} << 40 && step.now_us >= 1'000'000'000'000'000;
  });
}

BOOST_AUTO_TEST_SUITE(vectors_script_suite)

BOOST_AUTO_TEST_CASE(the_script_in_redis_decides_them_as_they_say) {
  Redis redis;
  std::size_t run = 0;
  for (const vectors::Vector& vector : suites::vectors_in_file()) {
    if (!claimed(vector)) continue;
    ++run;
    redis.clear();
    for (std::size_t i = 0; i < vector.steps.size(); ++i) {
      const vectors::Step& step = vector.steps[i];
      BOOST_TEST_CONTEXT('"' << vector.name << "\", step " << i + 1) {
        const std::vector<harness::Command> commands{
            harness::clock_command(Instant{Micros{step.now_us}}), harness::look_command({key}),
            redis.take(key, {std::to_string(step.limit.capacity), std::to_string(step.limit.refill),
                             std::to_string(step.cost), std::to_string(step.limit.period_us)}),
            harness::look_command({key})};
        const auto replies = redis.connection.pipeline(commands);
        const auto& reply = replies.at(2).elements;
        BOOST_REQUIRE_MESSAGE(reply.size() == 4, harness::show(replies.at(2)));
        const Decision& decision = step.decision;
        BOOST_TEST(reply.at(0).integer == (decision.allowed() ? 1 : 0));
        BOOST_TEST(reply.at(1).integer == (decision.retry_after ? in_ms(*decision.retry_after) : -1));
        BOOST_TEST(reply.at(2).integer == decision.remaining);
        BOOST_TEST(reply.at(3).integer == in_ms(decision.reset_after));

        const harness::Look look = harness::parse_look(replies.at(3));
        BOOST_TEST((look.writes > 0) == step.writes);
        // What is full may have been forgotten; what was written now may not.
        const auto& bytes = look.keys.at(0).bytes;
        if (bytes) BOOST_TEST((decode(*bytes)->bucket == step.state));
        if (step.writes) {
          BOOST_REQUIRE(bytes.has_value());
          BOOST_TEST(look.keys.at(0).expiry_ms.value() >= step.alive_until_us / 1000);
        }
      }
    }
  }
  BOOST_TEST(run >= suites::vectors_in_file().size() - 3);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weir
