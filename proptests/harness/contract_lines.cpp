#include "proptests/harness/contract_lines.h"

#include <cctype>
#include <optional>
#include <set>
#include <vector>

namespace weir::harness {
namespace {

struct Token {
  std::string_view text;  // a name, one character of punctuation, or "" for a literal
  int line;
};

/// As much of Lua's grammar of words as tells names from what stands in strings and comments.
class Tokens {
 public:
  explicit Tokens(std::string_view source) : rest_(source) {}

  std::optional<Token> next() {
    skip_space_and_comments();
    if (rest_.empty()) return std::nullopt;
    const int line = line_;
    const char first = rest_[0];
    if (is_name(first)) {
      std::size_t size = 1;
      while (size < rest_.size() && is_name(rest_[size])) ++size;
      return Token{take(size), line};
    }
    if (first == '"' || first == '\'') {
      std::size_t size = 1;
      while (size < rest_.size() && rest_[size] != first) size += rest_[size] == '\\' ? 2U : 1U;
      take(size + 1);
      return Token{"", line};
    }
    if (const auto size = long_bracket(rest_)) {
      take(*size);
      return Token{"", line};
    }
    for (const std::string_view sign : {"==", "~=", "<=", ">="})
      if (rest_.starts_with(sign)) return Token{take(2), line};
    return Token{take(1), line};
  }

 private:
  static bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  /// The size of [[...]] or [==[...]==], where one starts here.
  static std::optional<std::size_t> long_bracket(std::string_view text) {
    if (!text.starts_with('[')) return std::nullopt;
    std::size_t level = 1;
    while (level < text.size() && text[level] == '=') ++level;
    if (level >= text.size() || text[level] != '[') return std::nullopt;
    const std::string closing = "]" + std::string(level - 1, '=') + "]";
    const std::size_t end = text.find(closing, level);
    return end == std::string_view::npos ? text.size() : end + closing.size();
  }

  void skip_space_and_comments() {
    for (;;) {
      if (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0])) != 0) {
        take(1);
      } else if (rest_.starts_with("--")) {
        take(2);
        const auto size = long_bracket(rest_);
        take(size ? *size : rest_.find('\n'));
      } else {
        return;
      }
    }
  }

  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    for (const char c : taken) line_ += c == '\n';
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string_view rest_;
  int line_ = 1;
};

}  // namespace

std::map<std::string, int> field_lines(std::string_view source) {
  static const std::set<std::string_view> opens{"{", "(", "[", "function", "if", "do", "repeat"};
  static const std::set<std::string_view> closes{"}", ")", "]", "end", "until"};

  struct Open {
    std::string_view by;
    std::string path;  // of the table, where it is one of the contract's: "" or "limits."
    bool ours;
  };
  std::vector<Open> open;
  std::map<std::string, int> lines;
  std::optional<Token> before;
  std::string field;  // the one whose value comes next
  Tokens tokens{source};
  std::optional<Token> token = tokens.next();
  while (token) {
    const std::optional<Token> after = tokens.next();
    const bool starts_field = before && (before->text == "{" || before->text == "," || before->text == ";");
    if (starts_field && after && after->text == "=" && !open.empty() && open.back().ours) {
      field = open.back().path + std::string{token->text};
      lines[field] = token->line;
    } else if (opens.contains(token->text)) {
      const bool root = token->text == "{" && open.empty();
      const bool value = token->text == "{" && !open.empty() && open.back().ours && before && before->text == "=";
      if (root) lines = {{"", token->line}};
      open.push_back({token->text, value ? field + "." : "", root || value});
    } else if (closes.contains(token->text) && !open.empty()) {
      open.pop_back();
    }
    before = token;
    token = after;
  }
  return lines;
}

}  // namespace weir::harness
