#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/bucket.h"
#include "weir/limit.h"
#include "weir/time.h"

namespace weir::model {

/// One call as the all-windows bound sees it. Calls stand in the order in which they took effect.
struct Call {
  Instant now;
  std::int64_t cost;  // tokens
  bool admitted;
};

/// A window from one call that was admitted at a cost to another (or the same), both included. A peek
/// admits nothing and leaves no trace, so it neither opens nor ends one; its reading of the clock counts.
struct Window {
  std::size_t first;  // index into the history
  std::size_t last;
  std::int64_t admitted;  // tokens
  Rational entitled;      // tokens: C + n/P · (furthest reading between them − the first)

  [[nodiscard]] bool broken() const { return admitted > entitled; }
};

/// The window that is furthest above (or least below) what one unchanged limit entitles to; empty if
/// nothing was admitted at a cost. The bound of DESIGN 2 holds if and only if it is not broken().
///
/// No window reaches across a point where the clock fell more than one time-to-full below its
/// high-water mark: there the bucket may have forgotten, and a new stretch begins. O(n).
[[nodiscard]] std::optional<Window> worst_window(const Limit& limit, std::span<const Call> history);

}  // namespace weir::model
