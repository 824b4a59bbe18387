#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proptests/harness/lua_host.h"
#include "proptests/harness/reply.h"

namespace weir::harness {

/// What a limiter's client does, as a function: a call and the replies it has seen so far -> its next
/// move. A program that is deterministic is nothing else, so a client's progress in a search is the
/// list of replies it has seen, and two clients with the same list are in the same state.
///
/// Remembers every move, and asks the Lua only where the replies are new. A script is the program of one
/// step: EVALSHA, and EVAL where the server does not know it (one step more); its error reply is a Refusal.
///
/// Not thread safe. The host outlives it; attempts from 2^30 on are the tree's.
class ProgramTree {
 public:
  explicit ProgramTree(LuaHost& host);
  ~ProgramTree();
  ProgramTree(const ProgramTree&) = delete;
  ProgramTree& operator=(const ProgramTree&) = delete;

  /// The move lasts until the next call of `move` or `clear`. A program that, run again with the same
  /// replies, does something else is refused where that is seen: it keeps state outside of itself.
  /// Precondition: the replies but the last one lead to a Send.
  [[nodiscard]] const Move& move(const Call& call, std::span<const Reply> replies);

  /// Moves remembered. At 50,000 the tree starts anew, so that replies which differ each time fill no memory.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void clear();

 private:
  struct Node;
  Move find_out(const Call& call, std::span<const Reply> replies, std::span<Node* const> path, int& attempt);
  Move script_move(const Call& call, std::span<const Reply> replies);
  Move program_move(const Call& call, std::span<const Reply> replies, std::span<Node* const> path, int& attempt);

  LuaHost& host_;
  std::string digest_;  // of the script, as EVALSHA takes it; empty: a client program
  std::map<std::string, std::unique_ptr<Node>> roots_;
  std::vector<Node*> path_;
  std::size_t size_ = 0;
  int attempts_;
};

}  // namespace weir::harness
