#pragma once

#include <filesystem>
#include <string>

#include "ci/gate/check.h"

namespace weir::gate {

/// How text for people is dressed: never colour alone.
struct Dress {
  bool colour = false;
};

/// The card of one limiter: a line a promise.
[[nodiscard]] std::string card_text(const Card& card, Dress dress);

/// One counterexample: what was promised, what happened, call by call, how to see it again.
[[nodiscard]] std::string counterexample_text(const Counterexample& found, const harness::Contract& contract,
                                              Dress dress);

/// How bad a failure is; 0 is what a reader wants to hear of first.
[[nodiscard]] std::size_t severity(const model::Failure& failure);

/// The counterexample to show where there is room for one; null where all is well.
[[nodiscard]] const Counterexample* worst(const Card& card);

/// The last line: what came of all of them.
[[nodiscard]] std::string summary_text(const std::vector<Card>& cards);

/// Where the picture of a counterexample stands: beside its repro file.
[[nodiscard]] std::filesystem::path picture_file(const std::filesystem::path& repro);

// The words of the above, for pictures.
[[nodiscard]] std::string promise_text(model::Promise promise);         // "never more than capacity plus ..."
[[nodiscard]] std::string limit_text(const model::Plan& plan);          // "10, +1 per 1 s"
[[nodiscard]] std::string seen_text(const model::Observation& seen);    // "denied, retry in 1 s"
[[nodiscard]] std::string right_text(const model::Expected& expected);  // "ALLOWED, 3 left"
[[nodiscard]] std::string spaced(std::string words);                    // over_admission -> over admission

/// 1234567 -> "1,234,567"
[[nodiscard]] std::string grouped(std::uint64_t count);

}  // namespace weir::gate
