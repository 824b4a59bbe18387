#include "proptests/harness/reply.h"

#include <algorithm>
#include <string_view>

namespace weir::harness {
namespace {

std::string quoted(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text += "\\x";
      text += digits[byte >> 4];
      text += digits[byte & 0xf];
    }
  }
  return text += '"';
}

bool reads_as_a_word(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; });
}

}  // namespace

std::string show(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::nil: return "nil";
    case Reply::Kind::integer: return std::to_string(reply.integer);
    case Reply::Kind::string: return quoted(reply.text);
    case Reply::Kind::status: return reply.text;
    case Reply::Kind::error: return "(error) " + reply.text;
    case Reply::Kind::array: break;
  }
  std::string text = "{";
  for (const Reply& element : reply.elements) {
    if (text.size() > 1) text += ", ";
    text += show(element);
  }
  return text += '}';
}

std::string show(const Command& command) {
  std::string text;
  for (const std::string& word : command) {
    if (!text.empty()) text += ' ';
    text += reads_as_a_word(word) ? word : quoted(word);
  }
  return text;
}

}  // namespace weir::harness
