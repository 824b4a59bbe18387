#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proptests/harness/explore_space.h"
#include "proptests/harness/server.h"

namespace weir::harness::explore {

/// Where a search says that a way ends, and where it does end on a server that was never restored.
struct Replay {
  std::vector<Happening> way;
  std::string searched;  // clients and keys, for people; equal if they agree
  std::string ran;
  [[nodiscard]] bool agrees() const { return searched == ran; }
};

/// One way through the space, each step as likely as any other that can happen there.
[[nodiscard]] std::vector<Happening> random_way(Space& space, std::uint64_t seed);

/// Runs a way from an empty server, each client on a connection of its own, every fault for real, and
/// restores nothing but what a restart or a failover is to find. Precondition: the space leads that way.
/// `server` is not the one that the space works on.
[[nodiscard]] Replay replay(Space& space, Server& server, const std::vector<Happening>& way);

}  // namespace weir::harness::explore
