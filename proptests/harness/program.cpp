#include "proptests/harness/program.h"

#include <boost/uuid/detail/sha1.hpp>
#include <cassert>
#include <utility>

#include "proptests/harness/lua_wire.h"

namespace weir::harness {
namespace {

constexpr std::size_t nodes_most = 50'000;
constexpr int attempts_from = 1 << 30;

std::string sha1(std::string_view text) {
  boost::uuids::detail::sha1 hash;
  hash.process_bytes(text.data(), text.size());
  boost::uuids::detail::sha1::digest_type words;
  hash.get_digest(words);
  std::string digits;
  for (const unsigned int word : words)
    for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[word >> shift & 0xf];
  return digits;
}

template <class Value>
std::string key_of(const Value& value) {
  wire::Writer bytes;
  wire::write(bytes, value);
  return std::string{bytes.bytes()};
}

Command eval(const char* name, const std::string& script, const Arguments& arguments) {
  Command command{name, script, std::to_string(arguments.keys.size())};
  command.insert(command.end(), arguments.keys.begin(), arguments.keys.end());
  command.insert(command.end(), arguments.args.begin(), arguments.args.end());
  return command;
}

}  // namespace

struct ProgramTree::Node {
  Move move;
  int attempt = 0;  // the host's coroutine that stands here, until the first reply takes it on; 0: none
  std::map<std::string, std::unique_ptr<Node>> after;
};

ProgramTree::ProgramTree(LuaHost& host) : host_(host), attempts_(attempts_from) {
  if (host.contract().script) digest_ = sha1(host.contract().script_text);
}

ProgramTree::~ProgramTree() {
  clear();
}

const Move& ProgramTree::move(const Call& call, std::span<const Reply> replies) {
  if (size_ >= nodes_most) clear();
  path_.clear();
  std::unique_ptr<Node>* at = &roots_[key_of(call)];
  for (std::size_t seen = 0;; ++seen) {
    if (*at == nullptr) {
      int attempt = 0;
      Move found = find_out(call, replies.first(seen), path_, attempt);
      *at = std::make_unique<Node>(Node{std::move(found), attempt, {}});
      ++size_;
    }
    if (seen == replies.size()) return (*at)->move;
    assert(std::holds_alternative<Send>((*at)->move));
    path_.push_back(at->get());
    at = &(*at)->after[key_of(replies[seen])];
  }
}

Move ProgramTree::find_out(const Call& call, std::span<const Reply> replies, std::span<Node* const> path,
                           int& attempt) {
  return digest_.empty() ? program_move(call, replies, path, attempt) : script_move(call, replies);
}

Move ProgramTree::script_move(const Call& call, std::span<const Reply> replies) {
  const bool unknown = !replies.empty() && replies.back().is_error() && replies.back().text.starts_with("NOSCRIPT");
  if (replies.empty() || (unknown && replies.size() == 1)) {
    auto arguments = std::move(host_.arguments({&call, 1}).front());
    if (auto* refusal = std::get_if<Refusal>(&arguments)) return std::move(*refusal);
    const auto& words = std::get<Arguments>(arguments);
    return Send{{unknown ? eval("EVAL", host_.contract().script_text, words) : eval("EVALSHA", digest_, words)}, false};
  }
  if (replies.back().is_error()) return Refusal{Refusal::Kind::raised, "the script replied " + show(replies.back())};
  auto answer = std::move(host_.answers({&replies.back(), 1}).front());
  if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
  return std::get<Answer>(answer);
}

Move ProgramTree::program_move(const Call& call, std::span<const Reply> replies, std::span<Node* const> path,
                               int& attempt) {
  Move move = Answer{};
  if (!path.empty() && path.back()->attempt != 0) {
    attempt = std::exchange(path.back()->attempt, 0);
    move = host_.resume(attempt, replies.back());
  } else {
    // The coroutine that stood before this reply went on with another one: a new one is brought here.
    attempt = ++attempts_;
    move = host_.begin(attempt, call);
    for (std::size_t seen = 0; seen < replies.size(); ++seen) {
      if (move != path[seen]->move) {
        host_.forget(std::exchange(attempt, 0));
        return Refusal{Refusal::Kind::wrong_shape,
                       host_.contract().file.string() +
                           ": take did something else when it was run again with the same call and replies; it must "
                           "keep no state between attempts but in Redis"};
      }
      move = host_.resume(attempt, replies[seen]);
    }
  }
  if (!std::holds_alternative<Send>(move)) attempt = 0;
  return move;
}

void ProgramTree::clear() {
  std::vector<Node*> left;
  for (const auto& [call, node] : roots_)
    if (node) left.push_back(node.get());
  while (!left.empty()) {
    Node* const node = left.back();
    left.pop_back();
    if (node->attempt != 0) host_.forget(node->attempt);
    for (const auto& [reply, next] : node->after) left.push_back(next.get());
  }
  roots_.clear();
  size_ = 0;
}

}  // namespace weir::harness
