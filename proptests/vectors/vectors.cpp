#include "proptests/vectors/vectors.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "model/bucket.h"

namespace weir::vectors {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view format = "weir token bucket vectors";
constexpr std::int64_t second = 1'000'000;
constexpr std::int64_t day = 86'400 * second;
constexpr std::int64_t year_2026 = 1'767'225'600 * second;
constexpr std::int64_t end_of_time = max_instant.time_since_epoch().count();

Bucket in_units(const model::State& state) {
  return {model::units_missing(state), state.as_of, static_cast<std::int64_t>(model::Integer{numerator(state.rate)}),
          static_cast<std::int64_t>(model::Integer{denominator(state.rate)})};
}

/// One bucket by the model: each request is answered, and both are kept.
class Writer {
 public:
  Writer(std::string name, std::string why, const Given& limit, std::int64_t now_us)
      : vector_{std::move(name), std::move(why), {}}, limit_(limit), now_us_(now_us) {}

  Writer& ask(std::int64_t cost) {
    const Limit limit = limit_.limit();
    const model::Output output = model::step(stored_, {limit, Instant{Micros{now_us_}}, Cost::make(cost).value()});
    stored_ = output.after;
    vector_.steps.push_back({limit_, now_us_, cost, output.decision, output.writes,
                             stored_ ? std::optional{in_units(*stored_)} : std::nullopt,
                             std::min(output.alive_until, max_instant).time_since_epoch().count()});
    return *this;
  }
  Writer& ask(std::initializer_list<std::int64_t> costs) {
    for (const std::int64_t cost : costs) ask(cost);
    return *this;
  }
  Writer& under(const Given& limit) {
    limit_ = limit;
    return *this;
  }
  Writer& at(std::int64_t now_us) {
    now_us_ = now_us;
    return *this;
  }
  Writer& after(std::int64_t us) { return at(now_us_ + us); }

  /// The same request a microsecond before, and at, the end of the wait that was told.
  Writer& wait_as_told(std::int64_t cost) {
    const std::int64_t wait = last().decision.retry_after.value().count();
    return after(wait - 1).ask(cost).after(1).ask(cost);
  }

  /// Whether a store that forgets as early as it may can have forgotten: then nothing but a grant
  /// brings it and one that does not forget to the same state.
  [[nodiscard]] bool may_be_forgotten() const {
    const auto written =
        std::find_if(vector_.steps.rbegin(), vector_.steps.rend(), [](const Step& s) { return s.writes; });
    return written != vector_.steps.rend() && now_us_ > written->alive_until_us;
  }

  [[nodiscard]] const Step& last() const { return vector_.steps.back(); }
  [[nodiscard]] std::int64_t now_us() const { return now_us_; }
  [[nodiscard]] const Given& limit() const { return limit_; }
  [[nodiscard]] Vector done() { return std::move(vector_); }

 private:
  Vector vector_;
  Given limit_;
  std::int64_t now_us_;
  std::optional<model::State> stored_;
};

/// The cases where implementations were seen to go wrong, or could.
std::vector<Vector> edge_cases() {
  constexpr Given three{3, 3, second};
  constexpr Given ten{10, 10, second};
  constexpr std::int64_t t = year_2026;
  std::vector<Vector> all;
  const auto add = [&](Writer& writer) { all.push_back(writer.done()); };

  add(Writer{"an absent bucket is full", "it gives its capacity at one instant, and no more", three, t}.ask(
      {1, 1, 1, 1}));
  add(Writer{"a wait that is told is enough and a microsecond less is not", "retry is rounded up, to the microsecond",
             three, t}
          .ask({3, 1})
          .wait_as_told(1));
  add(Writer{"a cost of all there is", "the whole capacity in one request, and the wait until it is there again", ten,
             t}
          .ask({10, 10})
          .wait_as_told(10));
  add(Writer{"a cost above the capacity", "is refused for ever, tells no wait, and writes nothing", ten, t}.ask(
      {11, max_quantity, 4, 11, 6, 11}));
  add(Writer{"a peek", "is answered like any request and writes nothing", ten, t}.ask({0, 10, 0}).after(1).ask(0));
  add(Writer{"an idle bucket", "is full, and no fuller for having been idle for years", ten, t}
          .ask(10)
          .after(second)
          .ask(10)
          .after(400 * day)
          .ask({10, 1}));
  add(Writer{"a rate that divides nothing",
             "7 tokens in 1,000,003 us: what is left of a token is kept, never rounded away",
             {7, 7, 1'000'003},
             t}
          .ask({7, 1})
          .wait_as_told(1)
          .ask(1)
          .wait_as_told(1)
          .after(142'857)
          .ask(1)
          .after(1)
          .ask(1));
  add(Writer{"three a day", "a slow limit: waits of hours, to the microsecond", {3, 3, day}, t}
          .ask({3, 1})
          .wait_as_told(1)
          .ask(2)
          .wait_as_told(2));
  add(Writer{
      "a thousand tokens a microsecond", "a fast limit: many tokens an instant", {1'000'000, 1'000'000, 1'000}, t}
          .ask({1'000'000, 1})
          .after(1)
          .ask({1'000, 1})
          .after(999)
          .ask({999'000, 1}));
  add(Writer{"a limit and its multiple are one limit",
             "2 in 2 s is 1 in 1 s: no change of plan, so no trace of it",
             {5, 1, second},
             t}
          .ask(5)
          .under({5, 2, 2 * second})
          .ask(1)
          .after(second - 1)
          .ask(1)
          .after(1)
          .ask(1)
          .under({5, 1'000, 1'000 * second})
          .ask(1));

  add(Writer{"a clock that steps back takes its refill back",
             "and a refusal is then written, so that the bucket goes on from there", ten, t}
          .ask(10)
          .after(500'000)
          .ask(1)
          .after(-300'000)
          .ask({1, 4})
          .wait_as_told(4)
          .after(-1)
          .ask(0));
  add(Writer{"a clock that swings earns nothing",
             "one second back and forth, again and again, at a bucket that is empty", ten, t}
          .ask({10, 1})
          .after(-second)
          .ask(1)
          .after(second)
          .ask(1)
          .after(-second)
          .ask(1)
          .after(second)
          .ask({1, 1}));
  add(Writer{"a clock thrown back by a year", "costs two times-to-full and no more", ten, t}
          .ask(10)
          .after(-365 * day)
          .ask(1)
          .wait_as_told(1));
  add(Writer{"a peek at a clock that went back", "tells what would be, and writes nothing", ten, t}
          .ask(10)
          .after(-100'000)
          .ask(0)
          .after(100'000)
          .ask(0));
  add(Writer{"never at a clock that went back", "writes nothing", ten, t}.ask(10).after(-100'000).ask({11, 1}));

  add(Writer{"a capacity that is raised", "what was gained is there to take", ten, t}
          .ask(10)
          .under({20, 10, second})
          .ask({10, 1})
          .under(ten)
          .ask(1));
  add(Writer{"a capacity that is lowered", "debt is cut to two capacities, then time is applied", {100, 10, second}, t}
          .ask(100)
          .under(ten)
          .ask(1)
          .wait_as_told(1)
          .after(100'000)
          .ask(1));
  add(Writer{"a capacity that is lowered while time passes",
             "cut first, then time: the other way round the wait were false",
             {100, 10, second},
             t}
          .ask(100)
          .under(ten)
          .after(5 * second)
          .ask(1));
  add(Writer{"a rate that is raised", "refuses nobody whom the old one would have allowed", ten, t}
          .ask(9)
          .under({10, 1'000, second})
          .ask({1, 1})
          .wait_as_told(1));
  add(Writer{"a rate that is lowered", "the old one governs up to the change", ten, t}
          .ask(10)
          .after(500'000)
          .under({10, 1, second})
          .ask({5, 1})
          .wait_as_told(1));
  add(Writer{"a change of plan that does not divide",
             "the debt is converted to the new units and rounded up",
             {10, 7, 1'000'003},
             t}
          .ask(5)
          .after(13)
          .under({10, 3, 999'983})
          .ask(1)
          .under({10, 7, 1'000'003})
          .ask(1)
          .under({10, 3, 999'983})
          .ask({1, 0}));
  add(Writer{"a change of plan is written by a refusal", "but not by a peek, nor by never", ten, t}
          .ask(10)
          .under({10, 3, second})
          .ask({0, 11, 1, 1}));
  add(Writer{"a change of plan while the clock goes back",
             "the old plan takes back what it gave, uncut; then the new one's two capacities are the most", ten, t}
          .ask(10)
          .after(-3 * second)
          .under({1'000, 3, second})
          .ask(1'000)
          .after(-3'600 * second)
          .under({5, 1, second})
          .ask(5));
  add(Writer{"two callers with two plans", "as while a new one is rolled out: each is served", ten, t}
          .ask(4)
          .under({20, 20, second})
          .ask(4)
          .under(ten)
          .after(10'000)
          .ask(4)
          .under({20, 20, second})
          .after(10'000)
          .ask(4)
          .under(ten)
          .ask(4));

  add(Writer{"the largest capacity", "2^51 tokens, and every sum still below 2^53", {max_quantity, 1, 1}, t}
          .ask({max_quantity, 1})
          .after(1)
          .ask({1, 1})
          .after(-1'000'000)
          .ask(max_quantity));
  add(Writer{"the longest period", "one token in 2^51 us: 71 years", {1, 1, max_quantity}, t}.ask({1, 1}).wait_as_told(
      1));
  add(Writer{"the largest refill of a script", "2^40 tokens a microsecond", {max_quantity, std::int64_t{1} << 40, 1}, t}
          .ask({max_quantity, 1})
          .after(1)
          .ask((std::int64_t{1} << 40) + 1)
          .after(2'047)
          .ask(max_quantity));
  add(Writer{"the largest refill",
             "2^51 tokens a microsecond; a store that counts in doubles may refuse it",
             {max_quantity, max_quantity, 1},
             t}
          .ask({max_quantity, 1})
          .after(1)
          .ask(max_quantity)
          .after(-1)
          .ask(1)
          .after(2)
          .ask(1));
  add(Writer{"the beginning and the end of time", "microseconds 0 and 2^53", {2, 1, second}, 0}
          .ask({2, 1})
          .after(second)
          .ask(1)
          .at(end_of_time - 1)
          .ask({2, 1})
          .after(1)
          .ask(1)
          .at(0)
          .ask({1, 0}));
  add(Writer{"one token", "the smallest limit", {1, 1, 1}, t}
          .ask({1, 1})
          .after(1)
          .ask({1, 2, 1})
          .after(-5)
          .ask(1)
          .after(7)
          .ask(1));
  return all;
}

/// Choices that are the same wherever this is compiled: the engine is specified, distributions are not.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : engine_(seed) {}
  [[nodiscard]] std::size_t below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }
  template <class T>
  [[nodiscard]] T one_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

 private:
  std::mt19937_64 engine_;
};

std::int64_t any_cost(Choices& choose, const Writer& writer) {
  const std::int64_t capacity = writer.limit().capacity;
  const std::int64_t left = writer.last().decision.remaining;
  const std::int64_t cost = choose.one_of<std::int64_t>(
      {0, 1, 1, 1, 2, left, left, left + 1, left / 2, capacity, capacity / 3, capacity + 1});
  return std::min(cost, max_quantity);
}

/// From a lattice: nothing, one, what flips the next answer, each of them ± 1; and now and then back.
std::int64_t any_step(Choices& choose, const Writer& writer) {
  const Decision& told = writer.last().decision;
  const Limit limit = writer.limit().limit();
  const std::int64_t forward =
      choose.one_of<std::int64_t>({0, 0, 0, 1, told.retry_after.value_or(Micros{0}).count(), told.reset_after.count(),
                                   limit.emission_interval().count(), limit.emission_interval().count() / 2, 1'000}) +
      choose.one_of<std::int64_t>({0, 0, 0, -1, 1});
  if (choose.below(8) != 0) return std::max<std::int64_t>(forward, 0);
  return -choose.one_of<std::int64_t>({1, forward, limit.time_to_full().count() / 2, limit.time_to_full().count() + 1,
                                       limit.time_to_full().count() * 2, second});
}

/// A walk of one tenant between plans.
Vector walk(std::size_t number, const std::vector<Given>& plans) {
  Choices choose{number};
  Writer writer{"walk " + std::to_string(number), "drawn: time, costs, plans and steps back of the clock",
                plans.front(), year_2026};
  writer.ask(1);
  for (int step = 0; step < 40; ++step) {
    if (choose.below(6) == 0) writer.under(choose.one_of(plans));
    writer.at(std::clamp<std::int64_t>(writer.now_us() + any_step(choose, writer), 0, end_of_time));
    writer.ask(writer.may_be_forgotten() ? 1 : any_cost(choose, writer));
  }
  return writer.done();
}

// The file.

Json json_of(const Step& step) {
  Json json;
  json["limit"] = {
      {"capacity", step.limit.capacity}, {"refill", step.limit.refill}, {"period_us", step.limit.period_us}};
  json["now_us"] = step.now_us;
  json["cost"] = step.cost;
  const Decision& decision = step.decision;
  json["outcome"] = decision.outcome == Outcome::allowed  ? "allowed"
                    : decision.outcome == Outcome::denied ? "denied"
                                                          : "never";
  json["remaining"] = decision.remaining;
  json["retry_after_us"] = decision.retry_after ? Json(decision.retry_after->count()) : Json();
  json["reset_after_us"] = decision.reset_after.count();
  json["writes"] = step.writes;
  json["alive_until_us"] = step.writes ? Json(step.alive_until_us) : Json();
  json["state"] = Json();
  if (step.state) {
    json["state"] = {{"debt", step.state->debt},
                     {"as_of_us", step.state->as_of.time_since_epoch().count()},
                     {"refill", step.state->refill},
                     {"period_us", step.state->period_us}};
  }
  return json;
}

Outcome outcome_of(const std::string& word) {
  if (word == "allowed") return Outcome::allowed;
  if (word == "denied") return Outcome::denied;
  if (word == "never") return Outcome::never;
  throw std::invalid_argument("outcome is \"" + word + "\"; it must be allowed, denied or never");
}

Step step_of(const Json& json) {
  const auto number = [](const Json& of, const char* name) { return of.at(name).get<std::int64_t>(); };
  const Json& limit = json.at("limit");
  const Json& state = json.at("state");
  const bool writes = json.at("writes").get<bool>();
  Step step{{number(limit, "capacity"), number(limit, "refill"), number(limit, "period_us")},
            number(json, "now_us"),
            number(json, "cost"),
            {outcome_of(json.at("outcome").get<std::string>()), number(json, "remaining"), std::nullopt,
             Micros{number(json, "reset_after_us")}},
            writes,
            std::nullopt,
            writes ? number(json, "alive_until_us") : number(json, "now_us")};
  if (!json.at("retry_after_us").is_null()) step.decision.retry_after = Micros{number(json, "retry_after_us")};
  if (!state.is_null()) {
    step.state = Bucket{number(state, "debt"), Instant{Micros{number(state, "as_of_us")}}, number(state, "refill"),
                        number(state, "period_us")};
  }
  return step;
}

constexpr std::string_view checksum_begins = "  \"checksum\": \"";

/// FNV-1a, 64 bits: against slips, not against intent; a few lines in any language.
std::string checksum(std::string_view text) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100'0000'01b3;
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
  return hex;
}

/// The first field in which two steps differ, and both values.
std::string difference(const Step& in_file, const Step& right) {
  const Json here = json_of(in_file).flatten();
  const Json there = json_of(right).flatten();
  for (const auto& [field, value] : there.items()) {
    const Json given = here.value(field, Json("absent"));
    if (given != value) return field.substr(1) + " is " + given.dump() + "; the model says " + value.dump();
  }
  return "state is there; the model says that nothing is stored";
}

}  // namespace

Limit Given::limit() const {
  const auto limit = Limit::make(capacity, refill, Micros{period_us});
  if (!limit) throw std::invalid_argument(limit.error().message());
  return *limit;
}

std::vector<Vector> by_the_model() {
  std::vector<Vector> all = edge_cases();
  const std::vector<std::vector<Given>> plans{
      {{10, 10, second}},
      {{10, 10, second}, {20, 10, second}, {5, 10, second}},
      {{100, 100, second}, {100, 250, second}, {50, 20, second}},
      {{3, 3, day}, {1, 1, day}, {10, 7, 3'600 * second}},
      {{7, 7, 1'000'003}, {11, 13, 999'983}, {2, 1, 1'000'003}},
      {{1, 1, 1}, {1'000'000, 1'000'000, 1}, {1, 1, second}},
      {{1'000, 999'983, second}, {1'000, 1'000'003, second}},
      {{1'000'000, 1, 1'000'003}, {1'000'000, 1'000, 7}},
      {{max_quantity / 1'000, 1'000'003, 1'000}, {max_quantity / 999, 1, 999}, {3, 999, 1'000}},
      {{1, 1, max_quantity}, {2, 3, max_quantity / 2}, {max_quantity, std::int64_t{1} << 40, 1}},
      {{60, 60, 60 * second}, {60, 120, 120 * second}, {60, 1, second}},
      {{5'000, 123'457, second}, {26'062, 100'003, day}},
  };
  for (std::size_t number = 0; number < plans.size(); ++number) all.push_back(walk(number + 1, plans[number]));
  return all;
}

std::string write(const std::vector<Vector>& vectors) {
  std::string text = "{\n  \"format\": " + Json(format).dump() + ",\n  \"version\": " + std::to_string(version) +
                     ",\n  \"vectors\": [";
  const char* before = "\n";
  for (const Vector& vector : vectors) {
    text += before + ("    {\"name\": " + Json(vector.name).dump()) + ",\n     \"why\": " + Json(vector.why).dump() +
            ",\n     \"steps\": [";
    const char* before_step = "\n";
    for (const Step& step : vector.steps) {
      text += before_step + ("      " + json_of(step).dump());
      before_step = ",\n";
    }
    text += "]}";
    before = ",\n";
  }
  text += "],\n";
  return text + std::string{checksum_begins} + checksum(text) + "\"\n}\n";
}

std::vector<Vector> read(std::string_view text) try {
  const Json json = Json::parse(text);
  if (json.at("format") != format) throw std::invalid_argument("format is not \"" + std::string{format} + '"');
  if (json.at("version") != version) {
    throw std::invalid_argument("version is " + json.at("version").dump() + "; this program reads version " +
                                std::to_string(version));
  }
  const std::string right = checksum(text.substr(0, text.rfind(checksum_begins)));
  if (json.at("checksum") != right) {
    throw std::invalid_argument("checksum is " + json.at("checksum").dump() + ", but of what is written above it \"" +
                                right + "\": the file is not as it was written");
  }
  std::vector<Vector> vectors;
  for (const Json& each : json.at("vectors")) {
    Vector vector{each.at("name"), each.at("why"), {}};
    for (const Json& step : each.at("steps")) vector.steps.push_back(step_of(step));
    vectors.push_back(std::move(vector));
  }
  return vectors;
} catch (const nlohmann::json::exception& error) {
  throw std::invalid_argument(std::string{"no file of vectors: "} + error.what());
}

std::optional<std::string> fault_in(std::string_view text) try {
  for (const Vector& vector : read(text)) {
    if (vector.steps.empty()) return "vector \"" + vector.name + "\" has no steps";
    Writer writer{vector.name, vector.why, vector.steps.front().limit, vector.steps.front().now_us};
    for (std::size_t i = 0; i < vector.steps.size(); ++i) {
      const Step& step = vector.steps[i];
      writer.under(step.limit).at(step.now_us).ask(step.cost);
      if (step != writer.last()) {
        return "vector \"" + vector.name + "\", step " + std::to_string(i + 1) + ": " + difference(step, writer.last());
      }
    }
  }
  if (text != write(by_the_model())) {
    return "every answer is right, but these are not the vectors that `weir vectors` prints: write them anew";
  }
  return std::nullopt;
} catch (const std::invalid_argument& error) {
  return error.what();
}

int run(const std::string& file_to_check) {
  if (file_to_check.empty()) {
    const std::string text = write(by_the_model());
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
      throw std::runtime_error("the vectors cannot be written: is the disk full, or their reader gone?");
    }
    return 0;
  }
  std::ifstream file{file_to_check, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  if (!file) throw std::runtime_error(file_to_check + " cannot be read");
  const auto fault = fault_in(text);
  if (!fault) return 0;
  std::fprintf(stderr, "weir: %s: %s\n", file_to_check.c_str(), fault->c_str());
  return 1;
}

}  // namespace weir::vectors
