#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "weir/answer.h"
#include "weir/decision.h"
#include "weir/limit.h"
#include "weir/time.h"

namespace weir {

/// What a lease is taken from: a bucket that threads, or processes, share.
template <class T>
concept LeaseSource = requires(T& source, Instant now, Cost cost) {
  { source.acquire(now, cost) } -> std::same_as<Answer>;
  source.refund(now, cost);
};

struct LeaseTerms {
  /// Most tokens held unspent, at least 1. A good measure is an eighth of the capacity divided by
  /// the number of leases: then all of them together displace no more than an eighth of a burst.
  std::int64_t most_tokens;

  /// How long tokens may lie unspent before they are handed back.
  Micros time_to_live;
};

/// Tokens taken from a shared bucket in advance, spent by one thread without touching it again.
///
///     thread_local Lease lease{bucket, {.most_tokens = 64, .time_to_live = Micros{10'000}}};
///     if (lease.acquire(now)) serve();
///
/// Threads that all write one bucket wait for its cache line, 20 ns and more a request; a lease is a
/// decrement. Nothing is admitted that was not taken from the bucket first. What a lease moves is
/// *when* a token is spent, so the bound is: in any window, the leases together admit at most
/// capacity + refill · window + the tokens that lay in leases when it began, `most_tokens` a lease.
///
/// A lease asks for `most_tokens`, and for half as many each time the bucket has not that much, down to
/// what the request needs; so near the limit it takes tokens one by one, as everybody else does, and
/// nothing lies idle in one thread that another is refused for. Tokens that outlive `time_to_live`
/// are handed back at the next request, all at destruction.
///
/// Thread safety: one thread at a time, beside any number of others in the source; the source
/// outlives the lease. Source: DESIGN, section 6.
template <LeaseSource Source>
class Lease {
 public:
  Lease(Source& source, const LeaseTerms& terms) noexcept
      : source_(&source),
        terms_{std::clamp<std::int64_t>(terms.most_tokens, 1, max_quantity), terms.time_to_live},
        size_(terms_.most_tokens) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() { give_back(last_); }

  /// Whether `cost` tokens were spent; if not, `denial()` says for how long not.
  [[nodiscard]] bool acquire(Instant now, Cost cost = one_token) noexcept {
    if (cost.tokens() <= left_ && now < until_) [[likely]] {
      left_ -= cost.tokens();
      return true;
    }
    return renew(now, cost);
  }

  /// Hands all unspent tokens back.
  void give_back(Instant now) noexcept {
    if (left_ > 0) source_->refund(now, Cost::make(left_).value());
    left_ = 0;
  }

  /// The source's answer to the last request that was not spent from this lease.
  [[nodiscard]] const Answer& denial() const noexcept { return denial_; }

  [[nodiscard]] std::int64_t left() const noexcept { return left_; }

 private:
  [[nodiscard]] [[gnu::noinline]] bool renew(Instant now, Cost cost) noexcept {
    last_ = now;
    if (now >= until_) give_back(now);
    const std::int64_t missing = std::max<std::int64_t>(cost.tokens() - left_, 0);
    for (std::int64_t ask = std::max(missing, size_);;) {
      denial_ = source_->acquire(now, Cost::make(ask).value());
      if (denial_.allowed()) {
        size_ = std::min(terms_.most_tokens, 2 * ask);
        left_ += ask - cost.tokens();
        until_ = now + terms_.time_to_live;
        return true;
      }
      if (ask == missing) break;
      ask = std::max(missing, ask / 2);
    }
    size_ = std::clamp<std::int64_t>(missing, 1, terms_.most_tokens);
    return false;
  }

  Source* source_;
  LeaseTerms terms_;
  std::int64_t left_ = 0;
  std::int64_t size_;  // what to ask for next
  Instant until_{};
  Instant last_{};
  Answer denial_ = Answer::allowed_with(0);
};

}  // namespace weir
