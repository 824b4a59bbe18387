#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <span>

namespace weir::detail {

/// Zeroed memory straight from the kernel: a page that nobody touches costs nothing, and huge pages
/// spare a big table most of its address-translation misses.
template <class T>
class Pages {
 public:
  /// Throws std::bad_alloc.
  explicit Pages(std::size_t count) : count_(count) {
    if (count > static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(T)) throw std::bad_alloc{};
    void* memory = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc{};
    ::madvise(memory, bytes(), MADV_HUGEPAGE);  // advice: where it is not taken, nothing is lost but speed
    first_ = static_cast<T*>(memory);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(first_, bytes()); }

  [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(T); }
  [[nodiscard]] std::span<T> all() const noexcept { return {first_, count_}; }

 private:
  std::size_t count_;
  T* first_;
};

}  // namespace weir::detail
