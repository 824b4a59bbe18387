#include "proptests/harness/contract_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "proptests/harness/contract_lines.h"
#include "proptests/harness/error.h"
#include "weir/limit.h"

namespace weir::harness {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 12> known_fields{"name", "promises", "resolution", "clock", "script", "take",
                                                        "keys", "args",     "reply",      "state", "limits", "expect"};
constexpr std::array<std::string_view, 4> known_limits{"capacity", "refill", "period", "cost"};
constexpr std::array<std::string_view, 11> known_promises{"bound",    "exact",    "retry",      "remaining",
                                                          "lifetime", "no_trace", "bad_input",  "clock",
                                                          "plan",     "tenants",  "concurrency"};
constexpr std::array<std::string_view, 2> known_models{"token_bucket", "fixed_window"};
constexpr std::array<std::string_view, 3> known_units{"s", "ms", "us"};
constexpr std::array<std::string_view, 1> known_states{"weir"};

constexpr std::uintmax_t file_most = std::uintmax_t{1} << 20;

/// Letters to change, add or drop to make one into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string_view nearest(std::string_view name, Names names) {
  return *std::min_element(names.begin(), names.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
}

std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

std::string found(const LuaValue& value) {
  switch (value.kind) {
    case LuaValue::Kind::nil: return "nothing";
    case LuaValue::Kind::boolean: return value.number != 0 ? "true" : "false";
    case LuaValue::Kind::number: return number_text(value.number);
    case LuaValue::Kind::string: return '"' + value.text + '"';
    case LuaValue::Kind::table: return "a table";
    case LuaValue::Kind::function: return "a function";
  }
  return "nothing";
}

/// A file's text, or what is the matter with it.
struct Text {
  std::string text;
  std::string problem;
};

Text text_of(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) return {"", "there is no such file"};
  if (std::filesystem::is_directory(status)) return {"", "it is a directory"};
  if (!std::filesystem::is_regular_file(status)) return {"", "it is not a regular file"};
  const auto size = std::filesystem::file_size(file, error);
  if (!error && size > file_most) return {"", fmt::format("it has {} bytes", size)};
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>{stream}, {}};
  if (!stream.is_open() || stream.bad()) return {"", fmt::format("it cannot be read ({})", std::strerror(errno))};
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return {"", "it is empty"};
  return {std::move(text), ""};
}

std::string quoted(Names names) {
  std::string list;
  std::size_t left = names.size();
  for (const std::string_view name : names) {
    list += '"' + std::string{name} + '"';
    if (--left > 0) list += left == 1 ? " or " : ", ";
  }
  return list;
}

class Checker {
 public:
  Checker(const std::filesystem::path& file, std::map<std::string, int> lines)
      : file_(file), lines_(std::move(lines)) {}

  Contract check(const LuaValue& returned) {
    if (returned.kind != LuaValue::Kind::table)
      throw ContractError(
          fmt::format("{}: returned {}; it must return a table: return {{ name = ..., promises = ... }}",
                      file_.string(), found(returned)));
    for (const auto& [key, value] : returned.entries)
      if (value.kind == LuaValue::Kind::function && key.kind == LuaValue::Kind::string) lines_[key.text] = value.line;
    only_known(returned, "", "field", known_fields);

    Contract contract;
    contract.file = file_;
    contract.name = text(required(returned, "name", "it must be a string that names the limiter in reports"), "name",
                         "it must be a string that is not empty");
    contract.promises =
        choice(required(returned, "promises", "it must be " + quoted(known_models)), "promises", known_models) == 0
            ? Contract::Promises::token_bucket
            : Contract::Promises::fixed_window;
    if (const auto* value = field(returned, "resolution")) contract.resolution = unit(*value, "resolution");
    if (const auto* value = field(returned, "clock")) contract.clock = unit(*value, "clock");
    if (const auto* value = field(returned, "state")) contract.has_state = choice(*value, "state", known_states) == 0;
    check_limiter(returned, contract);
    if (const auto* value = field(returned, "limits")) check_limits(*value, contract);
    if (const auto* value = field(returned, "expect")) check_expect(*value, contract);
    contract.lines = std::move(lines_);
    return contract;
  }

 private:
  [[noreturn]] void refuse(const std::string& path, const std::string& what) const {
    std::string at = path;
    while (!lines_.contains(at) && !at.empty())
      at = at.substr(0, at.find_last_of('.') == at.npos ? 0 : at.find_last_of('.'));
    const auto line = lines_.find(at);
    throw ContractError(
        fmt::format("{}:{}: {}: {}", file_.string(), line == lines_.end() ? 1 : line->second, path, what));
  }

  static const LuaValue* field(const LuaValue& table, std::string_view name) {
    for (const auto& [key, value] : table.entries)
      if (key.kind == LuaValue::Kind::string && key.text == name) return &value;
    return nullptr;
  }

  const LuaValue& required(const LuaValue& table, const std::string& name, const std::string& expected) const {
    if (const LuaValue* value = field(table, name)) return *value;
    refuse(name, "is missing; " + expected);
  }

  void only_known(const LuaValue& table, const std::string& path, const char* what, Names names) const {
    // In the order of their text, so that of two wrong ones the same is named each time.
    std::vector<std::string> unknown;
    for (const auto& [key, value] : table.entries) {
      const bool named = key.kind == LuaValue::Kind::string;
      if (!named || std::find(names.begin(), names.end(), key.text) == names.end())
        unknown.push_back(named ? key.text : number_text(key.number));
    }
    if (unknown.empty()) return;
    std::sort(unknown.begin(), unknown.end());
    const std::string& name = unknown.front();
    refuse(path + name, fmt::format("is no {}; the nearest is {} (known are {})", what, nearest(name, names),
                                    fmt::join(names.begin(), names.end(), ", ")));
  }

  std::string text(const LuaValue& value, const std::string& path, const std::string& expected) const {
    if (value.kind != LuaValue::Kind::string || value.text.empty())
      refuse(path, "is " + found(value) + "; " + expected);
    return value.text;
  }

  std::size_t choice(const LuaValue& value, const std::string& path, Names names) const {
    if (value.kind != LuaValue::Kind::string) refuse(path, "is " + found(value) + "; it must be " + quoted(names));
    const auto chosen = std::find(names.begin(), names.end(), value.text);
    if (chosen == names.end())
      refuse(path, fmt::format("is {}; it must be {} (the nearest is \"{}\")", found(value), quoted(names),
                               nearest(value.text, names)));
    return static_cast<std::size_t>(chosen - names.begin());
  }

  Contract::Unit unit(const LuaValue& value, const std::string& path) const {
    constexpr std::array units{Contract::Unit::seconds, Contract::Unit::milliseconds, Contract::Unit::microseconds};
    return units.at(choice(value, path, known_units));
  }

  void check_limiter(const LuaValue& returned, Contract& contract) const {
    const LuaValue* const script = field(returned, "script");
    const LuaValue* const take = field(returned, "take");
    if (script != nullptr && take != nullptr)
      refuse("take", "stands beside script; a limiter is one of them: script (an EVALSHA) or take (a client program)");
    if (script == nullptr && take == nullptr)
      refuse("script",
             "is missing, and so is take; a limiter is a script (the path of a Lua script) or take (a function)");
    if (take != nullptr) {
      function(*take, "take", "function(redis, call) ... return { allowed = ... } end");
      for (const char* const name : {"keys", "args", "reply"})
        if (field(returned, name) != nullptr)
          refuse(name,
                 "stands beside take; it belongs to a script: take sends its own commands and returns the answer");
      return;
    }
    const std::string expected = "it must be the path of a Lua script, relative to the contract";
    contract.script = text(*script, "script", expected);
    const auto path = contract.file.parent_path() / *contract.script;
    Text read = text_of(path);
    if (!read.problem.empty())
      refuse("script", fmt::format("is {}, which is {}: {}; {}, at most 1 MiB long", found(*script), path.string(),
                                   read.problem, expected));
    contract.script_text = std::move(read.text);
    const std::array functions{std::pair{"keys", "function(call) return { call.key } end"},
                               std::pair{"args", "function(call) return { call.limit.capacity, call.cost } end"},
                               std::pair{"reply", "function(r) return { allowed = r[1] == 1 } end"}};
    for (const auto& [name, shape] : functions) {
      const std::string is_one = fmt::format("it must be a function like {}", shape);
      function(required(returned, name, is_one), name, shape);
    }
  }

  void function(const LuaValue& value, const std::string& path, const char* shape) const {
    if (value.kind != LuaValue::Kind::function)
      refuse(path, fmt::format("is {}; it must be a function like {}", found(value), shape));
  }

  void check_limits(const LuaValue& limits, Contract& contract) const {
    if (limits.kind != LuaValue::Kind::table)
      refuse("limits", "is " + found(limits) + "; it must be a table like { capacity = {1, 1000}, period = \"1s\" }");
    only_known(limits, "limits.", "part of limits", known_limits);
    if (const auto* value = field(limits, "capacity")) contract.capacity = range(*value, "limits.capacity");
    if (const auto* value = field(limits, "refill")) contract.refill = range(*value, "limits.refill");
    if (const auto* value = field(limits, "period")) contract.period_us = range(*value, "limits.period");
    if (const auto* value = field(limits, "cost")) contract.cost = range(*value, "limits.cost");
  }

  Range range(const LuaValue& value, const std::string& path) const {
    if (value.kind != LuaValue::Kind::table) {
      const std::int64_t only = quantity(value, path);
      return {only, only};
    }
    const LuaValue* ends[2]{};
    for (const auto& [key, end] : value.entries)
      if (key.kind == LuaValue::Kind::number && (key.number == 1 || key.number == 2)) ends[key.number == 2] = &end;
    if (value.entries.size() != 2 || ends[0] == nullptr || ends[1] == nullptr)
      refuse(path, fmt::format("is a table of {}; it must be {{least, most}}", value.entries.size()));
    const Range both{quantity(*ends[0], path), quantity(*ends[1], path)};
    if (both.least > both.most)
      refuse(path, fmt::format("is {{{}, {}}}, which is empty; it must be {{least, most}}", found(*ends[0]),
                               found(*ends[1])));
    return both;
  }

  /// A whole number; of a period, also "1s" and the like.
  std::int64_t quantity(const LuaValue& value, const std::string& path) const {
    const bool period = path == "limits.period";
    const int least = path == "limits.cost" ? 0 : 1;  // a cost of 0 peeks
    const std::string expected =
        fmt::format("it must be a whole number from {} to 2^51 ({}){}", least, max_quantity,
                    period ? " of microseconds, or like \"1s\", \"100ms\", \"250us\", \"1m\", \"1h\" or \"1d\"" : "");
    double number = value.number;
    if (period && value.kind == LuaValue::Kind::string) {
      constexpr std::array units{std::pair{"us", 1e0}, std::pair{"ms", 1e3},  std::pair{"s", 1e6},
                                 std::pair{"m", 6e7},  std::pair{"h", 3.6e9}, std::pair{"d", 8.64e10}};
      const std::size_t digits = std::min(value.text.find_first_not_of("0123456789"), value.text.size());
      const auto* const unit = std::find_if(
          units.begin(), units.end(), [&](const auto& known) { return value.text.substr(digits) == known.first; });
      number = digits == 0 || digits > 16 || unit == units.end()
                   ? -1
                   : std::stod(value.text.substr(0, digits)) * unit->second;
    } else if (value.kind != LuaValue::Kind::number) {
      refuse(path, "is " + found(value) + "; " + expected);
    }
    if (!(number >= least && number <= static_cast<double>(max_quantity)) || number != std::floor(number))
      refuse(path, "is " + found(value) + "; " + expected);
    return static_cast<std::int64_t>(number);
  }

  void check_expect(const LuaValue& expect, Contract& contract) const {
    if (expect.kind != LuaValue::Kind::table)
      refuse("expect", "is " + found(expect) + "; it must be a table like { bound = \"fail\" }");
    only_known(expect, "expect.", "promise", known_promises);
    for (const auto& [key, value] : expect.entries) {
      const std::string path = "expect." + key.text;
      if (value.kind != LuaValue::Kind::string || value.text != "fail")
        refuse(path, "is " + found(value) + "; it must be \"fail\" (leave out what is to pass)");
      contract.expect[key.text] = value.text;
    }
  }

  const std::filesystem::path& file_;
  std::map<std::string, int> lines_;
};

}  // namespace

std::string read_contract_source(const std::filesystem::path& file) {
  Text read = text_of(file);
  if (read.problem.empty()) return std::move(read.text);
  throw ContractError(fmt::format("{}: {}; a contract is a Lua file of at most 1 MiB that returns a table",
                                  file.string(), read.problem));
}

Contract check_contract(const std::filesystem::path& file, const std::string& source, const LuaValue& returned) {
  return Checker{file, field_lines(source)}.check(returned);
}

}  // namespace weir::harness
