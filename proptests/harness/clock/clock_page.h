#ifndef WEIR_CLOCK_PAGE_H
#define WEIR_CLOCK_PAGE_H

#include <stdint.h>

/* The page that the harness and the server's preloaded clock share: a file in the server's private
 * directory, mapped by both. Each field is read and written atomically. Read by C and by C++. */

/* Names the page's file to the preloaded clock. */
#define WEIR_CLOCK_PAGE_VARIABLE "WEIR_CLOCK_PAGE"

struct weir_clock_page {
  int64_t now_us;   /* what the next reading says, µs since 1970 */
  int64_t creep_us; /* what each reading then adds to it; 0 holds the clock */
};

#endif
