#include "weir/weir.h"

#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "weir/bucket.h"
#include "weir/local_limiter.h"
#include "weir/tsc_clock.h"

using weir::Answer;
using weir::Cost;
using weir::Instant;
using weir::Limit;
using weir::Micros;

/// What a handle points to.
struct weir_limiter {
  using Held = std::variant<weir::LocalLimiter, weir::ExactLocalLimiter>;

  template <class Limiter>
  weir_limiter(std::in_place_type_t<Limiter> which, const Limit& limit, const weir::LocalLimiterOptions& options,
               Instant epoch)
      : held(which, limit, options, epoch) {}

  [[nodiscard]] Instant now(std::int64_t now_us) const {
    if (now_us == WEIR_NOW) return clock.now();
    return Instant{Micros{now_us}};
  }

  weir::TscClock clock;
  Held held;
};

namespace {

constexpr std::int32_t failed = -1;

/// Refused with this sentence. Thrown and caught within this file.
class Refused : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

std::string& last_error() {
  thread_local std::string text;
  return text;
}

/// `action`, with whatever it throws told in the way of C.
template <class Action>
weir_status guarded(Action action) noexcept {
  try {
    action();
    return WEIR_OK;
  } catch (const std::bad_alloc&) {
    last_error().assign("out of memory");
    return WEIR_OUT_OF_MEMORY;
  } catch (const std::invalid_argument& error) {
    last_error().assign(error.what());
    return WEIR_INVALID_ARGUMENT;
  } catch (const std::exception& error) {
    last_error().assign(error.what());
    return WEIR_INTERNAL;
  }
}

template <class Struct>
void check_size(const Struct* given, const char* name) {
  if (given == nullptr) throw Refused(std::string{name} + " is null");
  if (given->size < sizeof(Struct)) {
    throw Refused(std::string{name} + ".size is " + std::to_string(given->size) + "; it must be sizeof(weir_" + name +
                  "), " + std::to_string(sizeof(Struct)) + " bytes in this library");
  }
}

Limit limit_of(const weir_limit* given) {
  check_size(given, "limit");
  const auto limit = Limit::make(given->capacity, given->refill, Micros{given->period_us});
  if (!limit) throw Refused(limit.error().message());
  return *limit;
}

Cost cost_of(std::int64_t tokens) {
  const auto cost = Cost::make(tokens);
  if (!cost) throw Refused(cost.error().message());
  return *cost;
}

void check_now(std::int64_t now_us, bool own_clock_allowed) {
  if (own_clock_allowed && now_us == WEIR_NOW) return;
  if (now_us < 0 || now_us > weir::max_instant.time_since_epoch().count()) {
    throw Refused("now_us is " + std::to_string(now_us) + "; it must be microseconds from 0 to 2^53" +
                  (own_clock_allowed ? ", or WEIR_NOW" : ""));
  }
}

weir_limiter& limiter_of(weir_limiter* limiter) {
  if (limiter == nullptr) throw Refused("limiter is null");
  return *limiter;
}

std::string_view key_of(const char* key, std::size_t size) {
  if (key == nullptr && size > 0) throw Refused("key is null, but key_size is " + std::to_string(size));
  return {key, size};
}

void tell(const weir::Decision& from, Micros wait, weir_decision& to) {
  to.outcome = static_cast<std::int32_t>(from.outcome);
  to.reserved = 0;
  to.remaining = from.remaining;
  to.retry_after_us = from.retry_after ? from.retry_after->count() : -1;
  to.reset_after_us = from.reset_after.count();
  to.wait_us = wait.count();
}

static_assert(static_cast<int>(weir::Outcome::allowed) == WEIR_ALLOWED);
static_assert(static_cast<int>(weir::Outcome::denied) == WEIR_DENIED);
static_assert(static_cast<int>(weir::Outcome::never) == WEIR_NEVER);

/// One request of a limiter, by `ask(limiter, key, now, cost)`.
template <class Ask>
std::int32_t request(weir_limiter* limiter, const char* key, std::size_t key_size, std::int64_t cost,
                     std::int64_t now_us, weir_decision* decision, Ask ask) noexcept {
  std::int32_t outcome = failed;
  guarded([&] {
    weir_limiter& handle = limiter_of(limiter);
    if (decision != nullptr) check_size(decision, "decision");
    check_now(now_us, true);
    const Cost tokens = cost_of(cost);
    const std::string_view name = key_of(key, key_size);
    const Instant now = handle.now(now_us);
    std::visit(
        [&](auto& held) {
          const Answer answer = ask(held, name, now, tokens);
          outcome = static_cast<std::int32_t>(answer.outcome());
          if (decision != nullptr) tell(answer.decision(held.limit()), answer.wait(held.limit()), *decision);
        },
        handle.held);
  });
  return outcome;
}

}  // namespace

uint32_t weir_abi_version() {
  return WEIR_ABI_VERSION;
}

const char* weir_version() {
  return WEIR_VERSION;
}

const char* weir_last_error() {
  return last_error().c_str();
}

weir_status weir_decide(const weir_limit* limit, weir_bucket* bucket, int64_t now_us, int64_t cost,
                        weir_decision* decision, int32_t* writes) {
  return guarded([&] {
    const Limit by = limit_of(limit);
    check_size(bucket, "bucket");
    check_size(decision, "decision");
    check_now(now_us, false);
    std::optional<weir::Bucket> stored;
    if (bucket->period_us != 0) {
      check_now(bucket->as_of_us, false);
      const auto wrote = Limit::make(1, bucket->refill, Micros{bucket->period_us});
      if (!wrote || bucket->debt < 0 || bucket->debt > 2 * weir::max_quantity) {
        throw Refused("bucket is none that weir_decide wrote: debt " + std::to_string(bucket->debt) + ", refill " +
                      std::to_string(bucket->refill) + ", period_us " + std::to_string(bucket->period_us));
      }
      stored = weir::Bucket{bucket->debt, Instant{Micros{bucket->as_of_us}}, wrote->refill(), wrote->period().count()};
    }
    const weir::Step step = weir::decide(by, stored, Instant{Micros{now_us}}, cost_of(cost));
    tell(step.decision, Micros{0}, *decision);
    if (step.write) {
      bucket->debt = step.write->debt;
      bucket->as_of_us = step.write->as_of.time_since_epoch().count();
      bucket->refill = step.write->refill;
      bucket->period_us = step.write->period_us;
    }
    if (writes != nullptr) *writes = step.write ? 1 : 0;
  });
}

weir_status weir_limiter_create(const weir_limit* limit, const weir_limiter_options* options, weir_limiter** limiter) {
  return guarded([&] {
    if (limiter == nullptr) throw Refused("limiter is null: nowhere to put the new one");
    *limiter = nullptr;
    const Limit by = limit_of(limit);
    check_size(options, "limiter_options");
    check_now(options->epoch_us, true);
    if (options->live_keys < 1) {
      throw Refused("live_keys is " + std::to_string(options->live_keys) + "; it must be at least 1");
    }
    if (options->when_full != WEIR_DENY_NEW_KEYS && options->when_full != WEIR_ADMIT_UNCHARGED) {
      throw Refused("when_full is " + std::to_string(options->when_full) +
                    "; it must be WEIR_DENY_NEW_KEYS (0) or WEIR_ADMIT_UNCHARGED (1)");
    }
    const weir::LocalLimiterOptions as{
        .live_keys = static_cast<std::size_t>(options->live_keys),
        .when_full = options->when_full == WEIR_DENY_NEW_KEYS ? weir::WhenFull::deny : weir::WhenFull::admit};
    const Instant epoch = options->epoch_us == WEIR_NOW ? weir::TscClock{}.now() : Instant{Micros{options->epoch_us}};
    *limiter = options->exact_keys != 0 ? new weir_limiter{std::in_place_type<weir::ExactLocalLimiter>, by, as, epoch}
                                        : new weir_limiter{std::in_place_type<weir::LocalLimiter>, by, as, epoch};
  });
}

void weir_limiter_destroy(weir_limiter* limiter) {
  delete limiter;
}

int32_t weir_limiter_acquire(weir_limiter* limiter, const char* key, size_t key_size, int64_t cost, int64_t now_us,
                             weir_decision* decision) {
  return request(
      limiter, key, key_size, cost, now_us, decision,
      [](auto& held, std::string_view name, Instant now, Cost tokens) { return held.acquire(name, now, tokens); });
}

int32_t weir_limiter_reserve(weir_limiter* limiter, const char* key, size_t key_size, int64_t cost, int64_t now_us,
                             int64_t patience_us, weir_decision* decision) {
  return request(limiter, key, key_size, cost, now_us, decision,
                 [patience_us](auto& held, std::string_view name, Instant now, Cost tokens) {
                   return held.reserve(name, now, tokens, Micros{patience_us});
                 });
}

weir_status weir_limiter_refund(weir_limiter* limiter, const char* key, size_t key_size, int64_t tokens,
                                int64_t now_us) {
  return guarded([&] {
    weir_limiter& handle = limiter_of(limiter);
    check_now(now_us, true);
    const Cost back = cost_of(tokens);
    const std::string_view name = key_of(key, key_size);
    std::visit([&](auto& held) { held.refund(name, handle.now(now_us), back); }, handle.held);
  });
}

weir_status weir_limiter_change_limit(weir_limiter* limiter, const weir_limit* limit, int64_t now_us) {
  return guarded([&] {
    weir_limiter& handle = limiter_of(limiter);
    check_now(now_us, true);
    const Limit next = limit_of(limit);
    std::visit([&](auto& held) { held.change_limit(next, handle.now(now_us)); }, handle.held);
  });
}

weir_status weir_limiter_get_stats(const weir_limiter* limiter, weir_limiter_stats* stats) {
  return guarded([&] {
    if (limiter == nullptr) throw Refused("limiter is null");
    check_size(stats, "limiter_stats");
    std::visit(
        [&](const auto& held) {
          const weir::LocalLimiterStats now = held.stats();
          stats->overflowed = now.overflowed;
          stats->inserted = now.inserted;
          stats->bytes = held.bytes();
        },
        limiter->held);
  });
}
