#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/explore.h"
#include "proptests/harness/contract.h"
#include "proptests/harness/explore_replay.h"
#include "proptests/harness/explore_space.h"

namespace weir::gate {

/// What `weir explore` is asked for. What is left out follows from the contract and the number of calls.
struct ExploreOptions {
  int clients = 3;
  int attempts = 2;
  int ticks = 2;
  int faults = 0;
  std::optional<Micros> tick;            // the emission interval, or the window
  std::optional<std::int64_t> capacity;  // so many that the calls of the scope ask for more
  std::optional<std::int64_t> refill;    // the least that the contract claims
  bool keep_going = false;
  bool symmetry = true;
  std::size_t states_most = 5'000'000;
};

/// A limiter under every order of the steps of a scope.
struct Explored {
  enum class Outcome : std::uint8_t { pass, fail, inconclusive };

  /// Something that had to happen in the scope for a pass to mean anything.
  struct Obligation {
    std::string what;
    std::uint64_t times;
    bool applies;  // where not: the limiter gives no occasion for it
    [[nodiscard]] bool is_met() const { return !applies || times > 0; }
  };
  struct Step {
    harness::explore::Happening happening;
    harness::explore::Told told;
    std::int64_t admitted;  // tokens so far
    std::string keys;       // what is stored after it
  };

  harness::Contract contract;
  harness::explore::Scope scope;
  std::string limit;  // "4, +1 per 1 s"
  model::explore::Exploration<harness::explore::Happening> search;
  bool symmetric = false;
  bool identity_matters = false;  // that is why not
  std::vector<Obligation> obligations;
  std::vector<Step> shortest;                   // empty: nothing broke a promise
  std::vector<harness::explore::Replay> audit;  // of ways run from an empty server; the failing one first
  std::size_t effects = 0;                      // different steps that were put to the server
  std::size_t longest_attempt = 0;              // round trips
  std::size_t attempt_alone = 0;
  std::string redis_version;
  double seconds = 0;
  std::string cut_short;  // why it is not complete

  [[nodiscard]] Outcome outcome() const;
  [[nodiscard]] bool audit_agrees() const;
};

/// Every order of the steps of the scope, on a private Redis; then some of the ways, and the failing one, on
/// another that is never restored. Deterministic. `between` is called with the states seen so far, and may
/// throw to stop. Throws ContractError where the scope does not fit what the contract claims.
[[nodiscard]] Explored explore(const std::filesystem::path& contract, const ExploreOptions& options,
                               const std::function<void(std::uint64_t)>& between = {});

/// The certificate of a pass, or the smallest counterexample; for people.
[[nodiscard]] std::string explored_text(const Explored& explored);

/// The same for programs (ci/README.md says what each field means).
[[nodiscard]] std::string explored_json(const Explored& explored, int exit_code);

}  // namespace weir::gate
