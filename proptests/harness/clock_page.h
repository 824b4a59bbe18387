#pragma once

#include <filesystem>

#include "proptests/harness/clock/clock_page.h"
#include "weir/time.h"

namespace weir::harness {

/// Our mapping of the page that the server's clock is read from (clock/weir_clock.c).
/// Thread safety: each call is one atomic access.
class ClockPage {
 public:
  /// Makes the file and gives it its bytes, so that no later store can fail. Throws EnvironmentError.
  ClockPage(const std::filesystem::path& file, Instant now);
  ~ClockPage();
  ClockPage(const ClockPage&) = delete;
  ClockPage& operator=(const ClockPage&) = delete;

  void set(Instant now);
  [[nodiscard]] Instant now() const;
  void set_creep(Micros per_reading);

 private:
  weir_clock_page* page_;
};

}  // namespace weir::harness
