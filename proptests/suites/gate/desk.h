#pragma once

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "proptests/suites/gate/command.h"
#include "proptests/suites/harness/scratch.h"

namespace weir::suites {

namespace fs = std::filesystem;
using Json = nlohmann::json;

inline constexpr int passed = 0;
inline constexpr int violation = 1;
inline constexpr int inconclusive = 2;
inline constexpr int usage = 3;
inline constexpr int environment = 4;

inline const std::string shipped = WEIR_SOURCE "/lua/contracts/token_bucket.lua";
inline const std::string published = WEIR_SOURCE "/lua/contracts/token_bucket_as_published.lua";

/// A directory to run the command in, and what is judged there.
struct Desk : harness::Scratch {
  [[nodiscard]] Ran run(std::vector<std::string> words,
                        std::map<std::string, std::optional<std::string>> variables = {}) const {
    return weir({.words = std::move(words),
                 .directory = directory,
                 .environment = std::move(variables),
                 .output = {},
                 .meanwhile = {}});
  }

  /// A program by this name that does what the shell script says.
  [[nodiscard]] std::string program(const std::string& name, const std::string& script) const {
    const fs::path file = write(name, "#!/bin/sh\n" + script + "\n");
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }

  /// A contract for a script with this text.
  [[nodiscard]] std::string limiter(const std::string& script, const std::string& more = "") const {
    write("limiter.lua", script);
    return write("contract.lua",
                 "return {\n  name = 'limiter', promises = 'token_bucket', resolution = 'ms', clock = 'ms',\n"
                 "  script = 'limiter.lua',\n  keys = function(call) return { call.key } end,\n"
                 "  args = function(call) return { call.limit.capacity, call.cost } end,\n"
                 "  reply = function(r) return { allowed = r[1] == 1, retry_after_ms = r[2] } end,\n"
                 "  limits = { capacity = { 1, 5 }, refill = { 1, 5 }, period = '1s' },\n" +
                     more + "}\n");
  }
};

/// The run ended with this code, said all of this, and left nothing.
inline void expect(const Ran& ran, int code, std::initializer_list<const char*> said) {
  BOOST_TEST(ran.code == code, "exit code " << ran.code << ", not " << code << ":\n" << ran.out << ran.err);
  for (const char* part : said)
    BOOST_TEST((ran.out + ran.err).find(part) != std::string::npos, "\"" << part << "\" must be in:\n"
                                                                         << ran.out << ran.err);
  BOOST_TEST(!ran.left_processes);
  BOOST_TEST(!ran.left_files);
}

inline const Json& line_of(const Json& result, const std::string& promise) {
  for (const Json& line : result.at("limiters").at(0).at("promises"))
    if (line.at("promise") == promise) return line;
  throw std::out_of_range(promise);
}

}  // namespace weir::suites
