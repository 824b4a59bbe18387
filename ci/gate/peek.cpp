#include "ci/gate/peek.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <memory>
#include <string_view>

#include "model/verdict.h"
#include "proptests/harness/error.h"
#include "weir/stored_bucket.h"

namespace weir::gate {
namespace {

using harness::ContractError;
using harness::EnvironmentError;

struct Free {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Context = std::unique_ptr<redisContext, Free>;
using ReplyPointer = std::unique_ptr<redisReply, Free>;

std::string where(const PeekOptions& options) {
  return options.socket.empty() ? fmt::format("{}:{}", options.host, options.port) : options.socket;
}

ReplyPointer ask(redisContext& context, const PeekOptions& options, std::initializer_list<std::string> words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  ReplyPointer reply{
      static_cast<redisReply*>(redisCommandArgv(&context, static_cast<int>(texts.size()), texts.data(), sizes.data()))};
  if (!reply)
    throw EnvironmentError(fmt::format("the Redis at {} does not answer: {}", where(options), context.errstr));
  if (reply->type == REDIS_REPLY_ERROR && std::string_view{reply->str}.starts_with("WRONGTYPE"))
    throw ContractError(fmt::format("{}: holds no bucket of lua/token_bucket.lua, but no string at all", options.key));
  if (reply->type == REDIS_REPLY_ERROR)
    throw EnvironmentError(fmt::format("the Redis at {} refuses {}: {}", where(options), *words.begin(), reply->str));
  return reply;
}

}  // namespace

int run_peek(const PeekOptions& options) {
  constexpr timeval deadline{.tv_sec = 2, .tv_usec = 0};
  const Context context{options.socket.empty() ? redisConnectWithTimeout(options.host.c_str(), options.port, deadline)
                                               : redisConnectUnixWithTimeout(options.socket.c_str(), deadline)};
  if (!context || context->err != 0)
    throw EnvironmentError(fmt::format("no Redis at {}: {}; say where with --host and --port, or --socket",
                                       where(options), context ? context->errstr : "out of memory"));
  redisSetTimeout(context.get(), deadline);

  const ReplyPointer value = ask(*context, options, {"GET", options.key});
  if (value->type == REDIS_REPLY_NIL) {
    fmt::print("{}: absent: a full bucket, under every limit\n", options.key);
    return 0;
  }
  const auto stored = decode({value->str, static_cast<std::size_t>(value->len)});
  if (!stored)
    throw ContractError(
        fmt::format("{}: holds no bucket of lua/token_bucket.lua: {}", options.key, stored.error().message()));

  const ReplyPointer time = ask(*context, options, {"TIME"});
  const Instant now{Micros{std::stoll(time->element[0]->str) * 1'000'000 + std::stoll(time->element[1]->str)}};
  const Bucket& bucket = stored->bucket;
  const auto date = [](std::int64_t us) {
    return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:06} UTC", fmt::gmtime(static_cast<std::time_t>(us / 1'000'000)),
                       us % 1'000'000);
  };
  const std::int64_t as_of = bucket.as_of.time_since_epoch().count();
  const Micros elapsed = now - bucket.as_of;
  const std::int64_t most = std::max(bucket.debt, max_quantity * 2);
  const std::int64_t debt = detail::move_time(bucket.debt, bucket.refill, elapsed, most);
  const auto in_tokens = [&](std::int64_t units) {
    return fmt::format("{:.6g} tokens ({} units of 1/{})",
                       static_cast<double>(units) / static_cast<double>(bucket.period_us), units, bucket.period_us);
  };
  fmt::print("{}\n", options.key);
  fmt::print("  limit    {} per {}, as it was last written; the capacity is the caller's and not stored\n",
             bucket.refill, model::show_time(bucket.period_us));
  fmt::print("  debt     {} as of {}\n", in_tokens(bucket.debt), date(as_of));
  fmt::print("  now      {}, {}\n", date(now.time_since_epoch().count()),
             elapsed.count() < 0 ? "before that: the clock went back" : model::show_time(elapsed.count()) + " later");
  fmt::print("  owed now {}; full again in {}\n", in_tokens(debt),
             model::show_time(detail::ceil_div(debt, bucket.refill)));
  fmt::print("  lives    until {}\n", date(stored->until_ms * 1'000));
  return 0;
}

}  // namespace weir::gate
