#include "ci/gate/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "ci/gate/counterexample.h"
#include "ci/gate/runner.h"
#include "proptests/harness/error.h"
#include "proptests/harness/lua_host.h"
#include "proptests/harness/server.h"

namespace weir::gate {

int Replayed::exit_code() const {
  if (found.second_run_differs) return 2;
  return failed == repro.expect_fail && other.empty() ? 0 : 1;
}

Replayed replay(const std::filesystem::path& file, const std::optional<std::filesystem::path>& contract) {
  Replayed replayed;
  replayed.repro = read_repro(file);
  const std::filesystem::path path = contract.value_or(replayed.repro.contract);
  if (!std::filesystem::exists(path))
    throw harness::ContractError(fmt::format(
        "{}: contract: there is no file {} here; run from where it was found, or say which with --contract FILE",
        file.string(), path.string()));

  harness::LuaHost host{path};
  harness::Server server;
  replayed.contract = host.contract();
  replayed.redis_version = server.version();
  if (replayed.repro.interleaving) {
    replayed.found = interleaving_counterexample(server, host, *replayed.repro.interleaving);
    const model::Failure& failure = replayed.found.failure;
    const std::string now = failure.kind.empty() ? "" : failure.name();
    replayed.failed = now == replayed.repro.promise + '.' + replayed.repro.kind;
    if (!replayed.failed) {
      replayed.other = now;
      replayed.found.second_run_differs = false;
    }
    return replayed;
  }
  Runner runner{server, host};
  const model::Promised promised = promised_by(host.contract());
  const std::span<const model::Scenario> once{&replayed.repro.scenario, 1};

  Counterexample& found = replayed.found;
  found.history = std::move(runner.run(once).front());
  found.verdict = model::judge(found.history, promised, true);
  found.second_run_differs = std::move(runner.run(once).front()).seen != found.history.seen;
  const auto& failures = found.verdict.failures;
  const std::string wanted = replayed.repro.promise + '.' + replayed.repro.kind;
  const auto same = std::find_if(failures.begin(), failures.end(),
                                 [&](const model::Failure& failure) { return failure.name() == wanted; });
  replayed.failed = same != failures.end();
  if (replayed.failed)
    found.failure = *same;
  else if (!failures.empty()) {
    found.failure = failures.front();
    replayed.other = failures.front().name();
  }
  return replayed;
}

}  // namespace weir::gate
