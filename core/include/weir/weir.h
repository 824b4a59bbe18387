#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <stddef.h>
#include <stdint.h>

/* weir for every language that can call C: libweir.so.
 *
 * All functions may be called from any thread, on one limiter too, except that nobody may be using a
 * limiter that is being destroyed. None throws, aborts, or keeps a pointer it was given. Whatever can
 * fail returns a weir_status; weir_last_error() then says in one sentence what was wrong and what
 * would be right, to the thread that called.
 *
 * A struct begins with its own size, set by the caller (sizeof, or what WEIR_*_INIT sets): a library
 * that knows more fields than the caller does leaves those alone, and one that knows fewer refuses
 * the call. Times are whole microseconds, tokens whole numbers.
 */

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a caller built against an older header would no longer be served. */
#define WEIR_ABI_VERSION 1
WEIR_API uint32_t weir_abi_version(void);

/* The release, as "0.1.0". */
WEIR_API const char* weir_version(void);

typedef enum weir_status {
  WEIR_OK = 0,
  WEIR_INVALID_ARGUMENT = 1, /* nothing was done */
  WEIR_OUT_OF_MEMORY = 2,
  WEIR_INTERNAL = 3
} weir_status;

/* Why the last call of this thread that failed did. Never null; valid until its next failure. */
WEIR_API const char* weir_last_error(void);

/* At most `capacity` tokens at one instant, `refill` tokens back every `period_us`: each 1 to 2^51,
 * and capacity * period_us, once refill and period are divided by their greatest common divisor,
 * within 2^51. */
typedef struct weir_limit {
  size_t size;
  int64_t capacity;
  int64_t refill;
  int64_t period_us;
} weir_limit;

typedef enum weir_outcome {
  WEIR_ALLOWED = 0,
  WEIR_DENIED = 1, /* not yet: the same request would pass after retry_after_us */
  WEIR_NEVER = 2   /* the cost is above the capacity: no wait helps */
} weir_outcome;

typedef struct weir_decision {
  size_t size;
  int32_t outcome;        /* a weir_outcome */
  int32_t reserved;       /* 0 */
  int64_t remaining;      /* whole tokens left after the request, rounded down */
  int64_t retry_after_us; /* 0 when allowed, -1 when never, else the wait that is enough */
  int64_t reset_after_us; /* until the bucket is full again */
  int64_t wait_us;        /* of a reservation: how long to wait before acting on it; else 0 */
} weir_decision;

/* The pure decision, for whoever keeps buckets himself. `stored.period_us` 0: there is no bucket. */
typedef struct weir_bucket {
  size_t size;
  int64_t debt;
  int64_t as_of_us;
  int64_t refill;
  int64_t period_us;
} weir_bucket;

/* Decides one request of `cost` tokens (0 peeks) at `now_us` (0 to 2^53) on `*bucket`, which becomes
 * what is to be stored; `*writes`, where not null, whether it changed. */
WEIR_API weir_status weir_decide(const weir_limit* limit, weir_bucket* bucket, int64_t now_us, int64_t cost,
                                 weir_decision* decision, int32_t* writes);

/* A bucket for each key, under one limit, in this process. */
typedef struct weir_limiter weir_limiter;

typedef enum weir_when_full { WEIR_DENY_NEW_KEYS = 0, WEIR_ADMIT_UNCHARGED = 1 } weir_when_full;

typedef struct weir_limiter_options {
  size_t size;
  int64_t live_keys;  /* buckets not full at one time, at least 1: fixes the memory, 27 bytes each */
  int32_t when_full;  /* a weir_when_full: what becomes of requests beyond that */
  int32_t exact_keys; /* 1: keys are compared byte for byte, at four times the memory */
  int64_t epoch_us;   /* the earliest now_us there will be; WEIR_NOW with the limiter's own clock */
} weir_limiter_options;

/* In place of a time: the limiter's own clock, the machine's monotonic one. One limiter is called
 * with one kind of time throughout. */
#define WEIR_NOW INT64_C(-1)

WEIR_API weir_status weir_limiter_create(const weir_limit* limit, const weir_limiter_options* options,
                                         weir_limiter** limiter);
WEIR_API void weir_limiter_destroy(weir_limiter* limiter); /* null is fine */

/* Takes `cost` tokens (0 peeks) from the bucket of `key`, or refuses and takes nothing.
 * `decision` may be null: the outcome is returned, or -1 for an error. This is the fast way. */
WEIR_API int32_t weir_limiter_acquire(weir_limiter* limiter, const char* key, size_t key_size, int64_t cost,
                                      int64_t now_us, weir_decision* decision);

/* Takes tokens that may not be there yet, to be acted on after decision.wait_us; refused where that
 * were longer than `patience_us`. Returns as weir_limiter_acquire. */
WEIR_API int32_t weir_limiter_reserve(weir_limiter* limiter, const char* key, size_t key_size, int64_t cost,
                                      int64_t now_us, int64_t patience_us, weir_decision* decision);

WEIR_API weir_status weir_limiter_refund(weir_limiter* limiter, const char* key, size_t key_size, int64_t tokens,
                                         int64_t now_us);

/* All buckets are under `limit` from now on; what they owe is converted, rounded up. */
WEIR_API weir_status weir_limiter_change_limit(weir_limiter* limiter, const weir_limit* limit, int64_t now_us);

typedef struct weir_limiter_stats {
  size_t size;
  uint64_t overflowed; /* requests answered by when_full */
  uint64_t inserted;   /* buckets begun */
  uint64_t bytes;      /* memory there is or will be */
} weir_limiter_stats;

WEIR_API weir_status weir_limiter_get_stats(const weir_limiter* limiter, weir_limiter_stats* stats);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
