#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace weir::harness {

/// A directory of this test's own, gone with it.
struct Scratch {
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::filesystem::filesystem_error("mkdtemp", {});
    directory = name;
  }
  ~Scratch() { std::filesystem::remove_all(directory); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::filesystem::path write(const std::string& name, std::string_view text) const {
    const auto file = directory / name;
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }

  /// A message with the directory taken out of it, so that it can be compared.
  [[nodiscard]] std::string without_directory(std::string message) const {
    const std::string prefix = directory.string() + "/";
    for (std::size_t at = 0; (at = message.find(prefix, at)) != std::string::npos;) message.erase(at, prefix.size());
    return message;
  }

  std::filesystem::path directory;
};

}  // namespace weir::harness
