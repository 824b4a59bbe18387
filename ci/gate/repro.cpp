#include "ci/gate/repro.h"

#include <fmt/format.h>

#include <boost/uuid/detail/sha1.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "model/verdict.h"
#include "proptests/harness/error.h"

namespace weir::gate {
namespace {

using Json = nlohmann::ordered_json;
using harness::ContractError;
using harness::EnvironmentError;
using model::Quantity;

constexpr int schema = 1;

std::string sha1(const std::string& text) {
  boost::uuids::detail::sha1 hash;
  hash.process_bytes(text.data(), text.size());
  unsigned int words[5];
  hash.get_digest(words);
  std::string digest;
  for (const unsigned int word : words) digest += fmt::format("{:08x}", word);
  return digest;
}

/// Numbers stay numbers; what is no whole number is text.
Json json_of(const Quantity& quantity) {
  return quantity.is_whole() ? Json(quantity.whole) : Json(*quantity.odd);
}

Json scenario_json(const model::Scenario& scenario) {
  Json plans = Json::array();
  for (const model::Plan& plan : scenario.plans)
    plans.push_back({{"capacity", json_of(plan.capacity)},
                     {"refill", json_of(plan.refill)},
                     {"period_us", json_of(plan.period_us)}});
  Json calls = Json::array();
  for (const model::TimedCall& call : scenario.calls)
    calls.push_back(
        {{"advance_us", call.advance_us}, {"tenant", call.tenant}, {"plan", call.plan}, {"cost", json_of(call.cost)}});
  return {{"start_us", scenario.start.time_since_epoch().count()}, {"plans", plans}, {"calls", calls}};
}

Json interleaving_json(const Interleaving& interleaving) {
  return {{"start_us", interleaving.start.time_since_epoch().count()},
          {"capacity", interleaving.plan.capacity.whole},
          {"refill", interleaving.plan.refill.whole},
          {"period_us", interleaving.plan.period_us.whole},
          {"clients", interleaving.clients},
          {"attempts", interleaving.attempts},
          {"schedule", harness::show(interleaving.schedule)}};
}

/// Reads one file, and says of anything that is not as expected where it stands.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : file_(file) {
    try {
      root_ = Json::parse(read_whole(file));
    } catch (const Json::parse_error& error) {
      throw ContractError(fmt::format("{}: no JSON: {}", file.string(), error.what()));
    }
  }

  Repro read() {
    if (field<std::string>(root_, "", "weir", "the text \"counterexample\"") != "counterexample")
      fail("weir", "the text \"counterexample\"");
    const int found = field<int>(root_, "", "schema", "a number");
    if (found != schema)
      fail("schema", fmt::format("{} (this one is of schema {}: find the counterexample again with `weir check`)",
                                 schema, found));
    Repro repro;
    repro.contract = field<std::string>(root_, "", "contract", "the path of a contract");
    repro.promise = field<std::string>(root_, "", "promise", "the name of a promise");
    if (!model::promise_named(repro.promise)) fail("promise", "the name of a promise, as on the card");
    repro.kind = field<std::string>(root_, "", "kind", "the kind of failure");
    const auto expect = field<std::string>(root_, "", "expect", "\"fail\" or \"pass\"");
    if (expect != "fail" && expect != "pass") fail("expect", "\"fail\" or \"pass\"");
    repro.expect_fail = expect == "fail";
    repro.script_sha1 = field<std::string>(root_, "", "script_sha1", "the SHA-1 of the script, or an empty text");
    if (root_.contains("interleaving")) {
      repro.interleaving = interleaving(root_.at("interleaving"));
      return repro;
    }
    const Json& scenario = member(root_, "", "scenario", "an object, or an interleaving");
    repro.scenario.start = Instant{Micros{field<std::int64_t>(scenario, "scenario.", "start_us", "a whole number")}};
    if (repro.scenario.start < Instant{} || repro.scenario.start > max_instant)
      fail("scenario.start_us", "microseconds since 1970, up to 2^53");
    const Json& plans = list(scenario, "plans");
    for (std::size_t index = 0; index < plans.size(); ++index) {
      const std::string where = fmt::format("scenario.plans[{}].", index);
      repro.scenario.plans.push_back({quantity(plans[index], where, "capacity"),
                                      quantity(plans[index], where, "refill"),
                                      quantity(plans[index], where, "period_us")});
    }
    const Json& calls = list(scenario, "calls");
    for (std::size_t index = 0; index < calls.size(); ++index) {
      const std::string where = fmt::format("scenario.calls[{}].", index);
      model::TimedCall call;
      call.advance_us = field<std::int64_t>(calls[index], where, "advance_us", "a whole number");
      call.tenant = field<int>(calls[index], where, "tenant", "0 or 1");
      if (call.tenant < 0 || call.tenant > 1) fail(where + "tenant", "0 or 1");
      call.plan = field<int>(calls[index], where, "plan", "the index of a plan");
      if (call.plan < 0 || call.plan >= static_cast<int>(plans.size())) fail(where + "plan", "the index of a plan");
      call.cost = quantity(calls[index], where, "cost");
      repro.scenario.calls.push_back(call);
    }
    return repro;
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& expected) const {
    throw ContractError(fmt::format("{}: {}: expected {}", file_.string(), where, expected));
  }

  const Json& member(const Json& object, const std::string& where, const char* name,
                     const std::string& expected) const {
    if (!object.is_object() || !object.contains(name)) fail(where + name, expected);
    return object.at(name);
  }

  Interleaving interleaving(const Json& object) const {
    const std::string where = "interleaving.";
    const auto whole = [&](const char* name) { return field<std::int64_t>(object, where, name, "a whole number"); };
    Interleaving read;
    read.start = Instant{Micros{whole("start_us")}};
    if (read.start < Instant{} || read.start > max_instant)
      fail(where + "start_us", "microseconds since 1970, up to 2^53");
    read.plan = {whole("capacity"), whole("refill"), whole("period_us")};
    if (!read.plan.limit()) fail(where + "capacity", "a limit that fits, with refill and period_us");
    const auto small = [&](const char* name) {
      const std::int64_t number = whole(name);
      if (number < 1 || number > 26) fail(where + name, "a whole number from 1 to 26");
      return static_cast<int>(number);
    };
    read.clients = small("clients");
    read.attempts = small("attempts");
    const auto schedule = harness::parse_schedule(field<std::string>(object, where, "schedule", "a schedule: A B A B"));
    if (!schedule) fail(where + "schedule", schedule.error());
    for (const harness::Slot& slot : *schedule)
      if (slot.is_clock() || slot.client >= read.clients) fail(where + "schedule", "names of its clients only");
    read.schedule = *schedule;
    return read;
  }

  template <class T>
  T field(const Json& object, const std::string& where, const char* name, const std::string& expected) const {
    const Json& value = member(object, where, name, expected);
    const bool fits = std::is_same_v<T, std::string> ? value.is_string() : value.is_number_integer();
    if (!fits) fail(where + name, expected);
    return value.get<T>();
  }

  const Json& list(const Json& object, const char* name) const {
    const Json& value = member(object, "scenario.", name, "a list with at least one entry");
    if (!value.is_array() || value.empty()) fail(std::string{"scenario."} + name, "a list with at least one entry");
    return value;
  }

  Quantity quantity(const Json& object, const std::string& where, const char* name) const {
    const Json& value = member(object, where, name, "a whole number, or text");
    if (value.is_number_integer()) return Quantity{value.get<std::int64_t>()};
    if (value.is_string()) return Quantity{value.get<std::string>()};
    fail(where + name, "a whole number, or text");
  }

  const std::filesystem::path& file_;
  Json root_;
};

}  // namespace

std::filesystem::path write_repro(const std::filesystem::path& directory, const Counterexample& found,
                                  const Card& card) {
  Json root{{"weir", "counterexample"},
            {"schema", schema},
            {"contract", card.contract.file.generic_string()},
            {"limiter", card.contract.name},
            {"promise", name(found.failure.promise)},
            {"kind", found.failure.kind},
            {"expect", "fail"},
            {"why", found.failure.why},
            {"at_call", found.failure.call},
            {"script_sha1", card.contract.script_text.empty() ? "" : sha1(card.contract.script_text)},
            {"redis", card.redis_version}};
  if (found.interleaving)
    root["interleaving"] = interleaving_json(*found.interleaving);
  else
    root["scenario"] = scenario_json(found.history.scenario);
  const std::string text = root.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  std::string kind = found.failure.name();
  for (char& letter : kind)
    if (letter == '.' || letter == '_') letter = '-';
  std::filesystem::path file =
      directory / fmt::format("{}-{}-{}.json", card.contract.file.stem().string(), kind, sha1(text).substr(0, 8));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    throw EnvironmentError(fmt::format("{}: cannot make this directory: {}", directory.string(), error.message()));
  write_whole(file, text);
  return file;
}

Repro read_repro(const std::filesystem::path& file) {
  return Reader{file}.read();
}

void write_whole(const std::filesystem::path& file, const std::string& text) {
  // What is no file (a pipe, /dev/stdout) is written to; a rename would put a file in its place.
  std::error_code unknown;
  const bool in_place = std::filesystem::exists(file, unknown) && !std::filesystem::is_regular_file(file, unknown);
  std::filesystem::path beside = file;
  if (!in_place) beside += ".part";
  const auto refuse = [&](const std::string& reason) {
    std::error_code ignored;
    if (!in_place) std::filesystem::remove(beside, ignored);
    throw EnvironmentError(fmt::format("{}: cannot be written: {}", file.string(), reason));
  };
  errno = 0;
  std::ofstream out{beside, std::ios::binary};
  out << text;
  out.close();
  if (!out) refuse(errno != 0 ? std::strerror(errno) : "the disk does not take it");
  if (in_place) return;
  std::error_code error;
  std::filesystem::rename(beside, file, error);
  if (error) refuse(error.message());
}

std::string read_whole(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw ContractError(file.string() + ": is a directory; a file was expected");
  errno = 0;
  std::ifstream in{file, std::ios::binary};
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    if (in && in.peek() == std::ifstream::traits_type::eof()) throw ContractError(file.string() + ": is empty");
    throw ContractError(fmt::format("{}: cannot be read: {}", file.string(),
                                    errno != 0 ? std::strerror(errno) : "no such file, or not readable"));
  }
  return text.str();
}

}  // namespace weir::gate
