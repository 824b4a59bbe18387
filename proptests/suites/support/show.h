#pragma once

#include <ostream>

#include "model/bucket.h"
#include "weir/bucket.h"

/// How values of ours read in a failure. Found by argument-dependent lookup.
namespace weir {

inline std::ostream& operator<<(std::ostream& out, const Limit& limit) {
  return out << "Limit{capacity " << limit.capacity() << ", " << limit.refill() << " per " << limit.period().count()
             << " us}";
}

inline std::ostream& operator<<(std::ostream& out, const Decision& decision) {
  static constexpr const char* names[] = {"allowed", "denied", "never"};
  out << names[static_cast<int>(decision.outcome)] << ", remaining " << decision.remaining << ", retry after ";
  decision.retry_after ? out << decision.retry_after->count() << " us" : out << "never";
  return out << ", reset after " << decision.reset_after.count() << " us";
}

inline std::ostream& operator<<(std::ostream& out, const Bucket& bucket) {
  return out << "Bucket{debt " << bucket.debt << " at " << bucket.as_of.time_since_epoch().count() << " us, "
             << bucket.refill << " per " << bucket.period_us << " us}";
}

namespace model {

inline std::ostream& operator<<(std::ostream& out, const Input& input) {
  return out << "cost " << input.cost.tokens() << " at " << input.now.time_since_epoch().count() << " us under "
             << input.limit;
}

}  // namespace model
}  // namespace weir
