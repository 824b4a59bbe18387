#include "proptests/harness/lua_host.h"

#include <map>
#include <stdexcept>
#include <utility>

#include "proptests/harness/contract_check.h"
#include "proptests/harness/error.h"
#include "proptests/harness/lua_process.h"
#include "proptests/harness/lua_value.h"
#include "proptests/harness/lua_wire.h"

namespace weir::harness {
namespace {

using wire::Outcome;
using wire::Reader;
using wire::Request;
using wire::write;
using wire::Writer;

constexpr int deaths_most_in_a_batch = 3;

void write_item(Writer& out, const Call& call) {
  out.part([&] { write(out, call); });
}
void write_item(Writer& out, const Reply& reply) {
  out.part([&] { write(out, reply); });
}

std::vector<std::string> read_words(Reader& in) {
  std::vector<std::string> words(in.number<std::uint32_t>());
  for (std::string& word : words) word = in.text();
  return words;
}

LuaValue read_value(Reader& in) {
  LuaValue value;
  value.kind = in.number<LuaValue::Kind>();
  switch (value.kind) {
    case LuaValue::Kind::nil: break;
    case LuaValue::Kind::boolean:
    case LuaValue::Kind::number: value.number = in.number<double>(); break;
    case LuaValue::Kind::string: value.text = in.text(); break;
    case LuaValue::Kind::function: value.line = in.number<std::int32_t>(); break;
    case LuaValue::Kind::table:
      while (in.number<std::uint8_t>() != 0) {
        LuaValue key = read_value(in);
        value.entries.emplace_back(std::move(key), read_value(in));
      }
      break;
  }
  return value;
}

Refusal read_refusal(Reader& in) {
  const auto kind = in.number<Refusal::Kind>();
  return {kind, std::string{in.text()}};
}

Arguments read_result(Reader& in, std::in_place_type_t<Arguments>) {
  Arguments arguments;
  arguments.keys = read_words(in);
  arguments.args = read_words(in);
  return arguments;
}

Answer read_result(Reader& in, std::in_place_type_t<Answer>) {
  Answer answer;
  answer.allowed = in.number<std::uint8_t>() != 0;
  answer.never = in.number<std::uint8_t>() != 0;
  for (auto* told : {&answer.retry_after_us, &answer.remaining, &answer.reset_after_us})
    if (in.number<std::uint8_t>() != 0) *told = in.number<std::int64_t>();
  return answer;
}

Send read_send(Reader& in) {
  Send send;
  send.pipelined = in.number<std::uint8_t>() != 0;
  send.commands.resize(in.number<std::uint32_t>());
  for (Command& command : send.commands) command = read_words(in);
  return send;
}

}  // namespace

struct LuaHost::Impl {
  Impl(const std::filesystem::path& file, std::chrono::milliseconds deadline_given) : deadline(deadline_given) {
    source = read_contract_source(file);
    const auto answer = load(file);
    if (const auto* death = std::get_if<LuaProcess::Death>(&answer))
      throw ContractError(file.string() + ": " + refused(*death, "the file").message +
                          "; a contract returns a table and does nothing else");
    Reader in{std::get<std::string_view>(answer)};
    if (in.number<Outcome>() == Outcome::refusal) {
      const std::string raised = read_refusal(in).message;
      const bool placed = raised.starts_with(file.string() + ":");
      throw ContractError((placed ? "" : file.string() + ": ") + raised +
                          "; a contract is a Lua file that returns a table");
    }
    contract = check_contract(file, source, read_value(in));
  }

  using Asked = std::variant<std::string_view, LuaProcess::Death>;

  Asked load(const std::filesystem::path& file) {
    out.clear();
    out.part([&] {
      out.number(Request::load);
      out.text(file.string());
      out.text(source);
    });
    return process.ask(out.bytes(), deadline);
  }

  /// A fresh child with the contract in it. The attempts it does not know are brought back when next needed.
  void restart() {
    process.restart();
    ++generation;
    const Asked answer = load(contract.file);
    if (std::holds_alternative<LuaProcess::Death>(answer) ||
        Reader{std::get<std::string_view>(answer)}.number<Outcome>() != Outcome::result)
      throw EnvironmentError(contract.file.string() + ": was loaded once and could not be loaded again");
  }

  [[nodiscard]] Refusal refused(const LuaProcess::Death& death, const std::string& what) const {
    if (death.hung)
      return {Refusal::Kind::deadline, what + " did not end within " + std::to_string(deadline.count()) + " ms"};
    return {Refusal::Kind::raised, what + " took down the process that runs it, which " + death.how};
  }

  [[nodiscard]] std::string named(const char* functions) const { return contract.file.string() + ": " + functions; }

  template <class Result, class Given>
  std::vector<std::variant<Result, Refusal>> batch(Request request, const std::string& what,
                                                   std::span<const Given> given, int deaths_left) {
    std::vector<std::variant<Result, Refusal>> results;
    if (given.empty()) return results;
    out.clear();
    out.part([&] {
      out.number(request);
      out.number(static_cast<std::uint32_t>(given.size()));
      for (const Given& item : given) write_item(out, item);
    });
    const Asked asked = process.ask(out.bytes(), deadline);
    if (const auto* answer = std::get_if<std::string_view>(&asked)) {
      results.reserve(given.size());
      Reader in{*answer};
      for (std::size_t i = 0; i < given.size(); ++i) {
        if (in.number<Outcome>() == Outcome::result)
          results.emplace_back(read_result(in, std::in_place_type<Result>));
        else
          results.emplace_back(read_refusal(in));
      }
      return results;
    }

    // What the child had worked out died with it: ask again for what stood before the call, and after it.
    const LuaProcess::Death death = std::get<LuaProcess::Death>(asked);
    restart();
    const std::size_t bad = death.call == 0 ? 0 : death.call - 1;
    results = batch<Result>(request, what, given.first(bad), deaths_left - 1);
    results.emplace_back(refused(death, what));
    const auto rest = given.subspan(bad + 1);
    if (deaths_left > 1) {
      for (auto& result : batch<Result>(request, what, rest, deaths_left - 1)) results.push_back(std::move(result));
    } else {
      const Refusal unasked{Refusal::Kind::deadline, what + " was not asked: too many calls before it did not end"};
      results.insert(results.end(), rest.size(), unasked);
    }
    return results;
  }

  Move move() {
    const Asked asked = process.ask(out.bytes(), deadline);
    if (const auto* death = std::get_if<LuaProcess::Death>(&asked)) {
      const Refusal refusal = refused(*death, named("take"));
      restart();
      return refusal;
    }
    Reader in{std::get<std::string_view>(asked)};
    switch (in.number<Outcome>()) {
      case Outcome::send: return read_send(in);
      case Outcome::refusal: return read_refusal(in);
      case Outcome::result: break;
    }
    const Answer answer = read_result(in, std::in_place_type<Answer>);
    saw(answer);
    return answer;
  }

  Move run(int attempt, const Call& call, std::span<const Reply> replies) {
    out.clear();
    out.part([&] {
      out.number(Request::run);
      out.number<std::int32_t>(attempt);
      write(out, call);
      out.number(static_cast<std::uint32_t>(replies.size()));
      for (const Reply& reply : replies) write(out, reply);
    });
    return move();
  }

  /// Keeps what the attempt has seen while it has not ended, for the case that the child dies under it.
  Move kept(int attempt, Move move) {
    if (!std::holds_alternative<Send>(move)) attempts.erase(attempt);
    return move;
  }

  void saw(const Answer& answer) {
    if (!answer.allowed && (answer.retry_after_us || answer.never)) contract.replies_retry = true;
    if (answer.remaining) contract.replies_remaining = true;
    if (answer.reset_after_us) contract.replies_reset = true;
  }

  struct Attempt {
    Call call;
    std::vector<Reply> replies;
    int generation;
  };

  std::chrono::milliseconds deadline;
  std::string source;
  LuaProcess process;
  Writer out;
  Contract contract;
  int generation = 0;  // of the child
  std::map<int, Attempt> attempts;
};

LuaHost::LuaHost(const std::filesystem::path& contract, std::chrono::milliseconds deadline)
    : impl_(std::make_unique<Impl>(contract, deadline)) {}
LuaHost::~LuaHost() = default;
LuaHost::LuaHost(LuaHost&&) noexcept = default;

const Contract& LuaHost::contract() const {
  return impl_->contract;
}

std::vector<std::variant<Arguments, Refusal>> LuaHost::arguments(std::span<const Call> calls) {
  return impl_->batch<Arguments>(Request::arguments, impl_->named("keys or args"), calls, deaths_most_in_a_batch);
}

std::vector<std::variant<Answer, Refusal>> LuaHost::answers(std::span<const Reply> replies) {
  auto answers = impl_->batch<Answer>(Request::answers, impl_->named("reply"), replies, deaths_most_in_a_batch);
  for (const auto& answer : answers)
    if (const auto* told = std::get_if<Answer>(&answer)) impl_->saw(*told);
  return answers;
}

Move LuaHost::begin(int attempt, const Call& call) {
  return replay(attempt, call, {});
}

Move LuaHost::replay(int attempt, const Call& call, std::span<const Reply> replies) {
  impl_->attempts[attempt] = {call, {replies.begin(), replies.end()}, impl_->generation};
  return impl_->kept(attempt, impl_->run(attempt, call, replies));
}

Move LuaHost::resume(int attempt, const Reply& reply) {
  const auto found = impl_->attempts.find(attempt);
  if (found == impl_->attempts.end())
    throw std::invalid_argument("attempt " + std::to_string(attempt) + " was not begun, or has ended");
  Impl::Attempt& seen = found->second;
  seen.replies.push_back(reply);
  if (seen.generation != impl_->generation) {
    seen.generation = impl_->generation;
    return impl_->kept(attempt, impl_->run(attempt, seen.call, seen.replies));
  }
  Writer& out = impl_->out;
  out.clear();
  out.part([&] {
    out.number(Request::resume);
    out.number<std::int32_t>(attempt);
    write(out, reply);
  });
  return impl_->kept(attempt, impl_->move());
}

void LuaHost::forget(int attempt) {
  const auto found = impl_->attempts.find(attempt);
  if (found == impl_->attempts.end()) return;
  const bool known = found->second.generation == impl_->generation;
  impl_->attempts.erase(found);
  if (!known) return;
  Writer& out = impl_->out;
  out.clear();
  out.part([&] {
    out.number(Request::forget);
    out.number<std::int32_t>(attempt);
  });
  if (std::holds_alternative<LuaProcess::Death>(impl_->process.ask(out.bytes(), impl_->deadline))) impl_->restart();
}

}  // namespace weir::harness
