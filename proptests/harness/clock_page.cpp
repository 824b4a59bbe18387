#include "proptests/harness/clock_page.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "proptests/harness/error.h"

namespace weir::harness {

ClockPage::ClockPage(const std::filesystem::path& file, Instant now) {
  const weir_clock_page fresh{.now_us = now.time_since_epoch().count(), .creep_us = 0};
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  // Written, not only sized: on a full disk a store to a page without its block would be a SIGBUS.
  const bool written = descriptor >= 0 && ::write(descriptor, &fresh, sizeof fresh) == sizeof fresh;
  void* address =
      written ? ::mmap(nullptr, sizeof fresh, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) : MAP_FAILED;
  const int cause = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (address == MAP_FAILED) {
    throw EnvironmentError{fmt::format("cannot write {}: {}; set TMPDIR to a directory with a few MiB of space",
                                       file.string(), std::strerror(cause))};
  }
  page_ = static_cast<weir_clock_page*>(address);
}

ClockPage::~ClockPage() {
  ::munmap(page_, sizeof *page_);
}

void ClockPage::set(Instant now) {
  std::atomic_ref{page_->now_us}.store(now.time_since_epoch().count());
}

Instant ClockPage::now() const {
  return Instant{Micros{std::atomic_ref{page_->now_us}.load()}};
}

void ClockPage::set_creep(Micros per_reading) {
  std::atomic_ref{page_->creep_us}.store(per_reading.count());
}

}  // namespace weir::harness
