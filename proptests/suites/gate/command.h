#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace weir::suites {

/// How to run a program.
struct Command {
  std::vector<std::string> words;                                 // after the program's name
  std::filesystem::path directory;                                // where; its temporary files go to directory/tmp
  std::map<std::string, std::optional<std::string>> environment;  // set, or (empty) taken out
  std::optional<std::filesystem::path> output;                    // instead of being caught
  std::function<void(int pid)> meanwhile;                         // called while it runs
};

/// What came of it.
struct Ran {
  int code = -1;  // of exit; 128 + the signal that ended it
  std::string out;
  std::string err;
  bool left_processes = false;  // something that it started outlived it
  bool left_files = false;      // something is in its directory for temporary files
};

/// Runs the built `weir` to its end and waits for whatever it started. One at a time.
[[nodiscard]] Ran weir(const Command& command);

}  // namespace weir::suites
