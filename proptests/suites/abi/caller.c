/* The C ABI as C sees it: what the header says, no C++ in sight. Exits with the number of the line that
 * was disappointed. */
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#define EXPECT(condition)                                                                         \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "line %d: %s (last error: %s)\n", __LINE__, #condition, weir_last_error()); \
      return 1;                                                                                   \
    }                                                                                             \
  } while (0)

int main(void) {
  EXPECT(weir_abi_version() == WEIR_ABI_VERSION);
  EXPECT(strcmp(weir_version(), WEIR_EXPECTED_VERSION) == 0);

  weir_limit limit = {sizeof limit, 10, 10, 1000000};
  weir_decision decision = {sizeof decision, 0, 0, 0, 0, 0, 0};

  /* The pure decision. */
  weir_bucket bucket = {sizeof bucket, 0, 0, 0, 0};
  int32_t writes = 0;
  EXPECT(weir_decide(&limit, &bucket, 5, 10, &decision, &writes) == WEIR_OK);
  EXPECT(decision.outcome == WEIR_ALLOWED && decision.remaining == 0 && decision.reset_after_us == 1000000 &&
         writes == 1);
  EXPECT(weir_decide(&limit, &bucket, 5, 1, &decision, &writes) == WEIR_OK);
  EXPECT(decision.outcome == WEIR_DENIED && decision.retry_after_us == 100000 && writes == 0);
  EXPECT(weir_decide(&limit, &bucket, 5, 11, &decision, NULL) == WEIR_OK);
  EXPECT(decision.outcome == WEIR_NEVER && decision.retry_after_us == -1);

  /* A limiter, by the caller's time. */
  weir_limiter_options options = {sizeof options, 1000, WEIR_DENY_NEW_KEYS, 0, 0};
  for (options.exact_keys = 0; options.exact_keys <= 1; ++options.exact_keys) {
    weir_limiter* limiter = NULL;
    EXPECT(weir_limiter_create(&limit, &options, &limiter) == WEIR_OK);
    EXPECT(weir_limiter_acquire(limiter, "a", 1, 10, 7, &decision) == WEIR_ALLOWED);
    EXPECT(decision.remaining == 0);
    EXPECT(weir_limiter_acquire(limiter, "a", 1, 1, 7, &decision) == WEIR_DENIED);
    EXPECT(decision.retry_after_us == 100000);
    EXPECT(weir_limiter_acquire(limiter, "b", 1, 1, 7, NULL) == WEIR_ALLOWED);
    EXPECT(weir_limiter_reserve(limiter, "a", 1, 1, 7, 99999, NULL) == WEIR_DENIED);
    EXPECT(weir_limiter_reserve(limiter, "a", 1, 1, 7, 100000, &decision) == WEIR_ALLOWED);
    EXPECT(decision.wait_us == 100000);
    EXPECT(weir_limiter_refund(limiter, "a", 1, 2, 7) == WEIR_OK);
    EXPECT(weir_limiter_acquire(limiter, "a", 1, 0, 7, &decision) == WEIR_ALLOWED);
    EXPECT(decision.remaining == 1);
    weir_limit raised = {sizeof raised, 20, 10, 1000000};
    EXPECT(weir_limiter_change_limit(limiter, &raised, 7) == WEIR_OK);
    EXPECT(weir_limiter_acquire(limiter, "a", 1, 0, 7, &decision) == WEIR_ALLOWED);
    EXPECT(decision.remaining == 11);
    weir_limiter_stats stats = {sizeof stats, 0, 0, 0};
    EXPECT(weir_limiter_get_stats(limiter, &stats) == WEIR_OK);
    EXPECT(stats.inserted == 2 && stats.overflowed == 0 && stats.bytes > 0);
    weir_limiter_destroy(limiter);
  }

  /* By its own clock. */
  options.exact_keys = 0;
  options.epoch_us = WEIR_NOW;
  weir_limiter* limiter = NULL;
  EXPECT(weir_limiter_create(&limit, &options, &limiter) == WEIR_OK);
  EXPECT(weir_limiter_acquire(limiter, "a", 1, 10, WEIR_NOW, NULL) == WEIR_ALLOWED);
  weir_limiter_destroy(limiter);
  weir_limiter_destroy(NULL);

  /* Bad input is named, and nothing happens. */
  limit.refill = 0;
  EXPECT(weir_limiter_create(&limit, &options, &limiter) == WEIR_INVALID_ARGUMENT && limiter == NULL);
  EXPECT(strstr(weir_last_error(), "refill is 0") != NULL);
  limit.refill = 10;
  limit.size = 4;
  EXPECT(weir_limiter_create(&limit, &options, &limiter) == WEIR_INVALID_ARGUMENT);
  EXPECT(strstr(weir_last_error(), "limit.size is 4") != NULL);
  EXPECT(weir_limiter_acquire(NULL, "a", 1, 1, 7, NULL) == -1);
  EXPECT(strstr(weir_last_error(), "limiter is null") != NULL);
  limit.size = sizeof limit;
  EXPECT(weir_limiter_create(&limit, &options, &limiter) == WEIR_OK);
  EXPECT(weir_limiter_acquire(limiter, "a", 1, -100, WEIR_NOW, NULL) == -1);
  EXPECT(strstr(weir_last_error(), "cost is -100") != NULL);
  EXPECT(weir_limiter_acquire(limiter, NULL, 1, 1, WEIR_NOW, NULL) == -1);
  EXPECT(strstr(weir_last_error(), "key is null") != NULL);
  weir_limiter_destroy(limiter);
  return 0;
}
