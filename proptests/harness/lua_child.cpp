#include "proptests/harness/lua_child.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <lua.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "proptests/harness/lua_host.h"
#include "proptests/harness/lua_value.h"
#include "proptests/harness/lua_wire.h"

namespace weir::harness {
namespace {

using wire::Outcome;
using wire::Reader;
using wire::Request;
using wire::Writer;

// What a contract may use: plain Lua. Nothing here reads a file, a clock, or bytecode (LuaJIT does not
// verify bytecode, so whoever can load it owns the process).
constexpr const char* allowed_globals[] = {
    "assert", "error",  "ipairs", "next",     "pairs",     "pcall",        "print",        "rawequal", "rawget",
    "rawset", "select", "xpcall", "type",     "tonumber",  "tostring",     "unpack",       "bit",      "math",
    "string", "table",  "_G",     "_VERSION", "coroutine", "getmetatable", "setmetatable",
};

// `step` suspends the program until the host has the replies. What checks the words is Lua, because a
// C function cannot raise an error in the program after it was resumed.
constexpr char prelude[] = R"lua(
local step, may_step, error, type, select = ...

local function check(what, words, count)
  if not may_step() then error(what .. " works only while take runs, and not inside a coroutine of its own", 3) end
  if count == 0 then error(what .. ": no command was given; it takes the command's words", 3) end
  for i = 1, count do
    local kind = type(words[i])
    if kind ~= "string" and kind ~= "number" then
      error(what .. ": word " .. i .. " is a " .. kind .. "; it must be a string or a number", 3)
    end
  end
end

local redis = {}

function redis.pcall(...)
  local words = {...}
  check("redis.pcall", words, select("#", ...))
  return step(false, {words})
end

function redis.call(...)
  local words = {...}
  check("redis.call", words, select("#", ...))
  local reply = step(false, {words})
  if type(reply) == "table" and reply.err then error(reply.err, 2) end
  return reply
end

function redis.pipeline(commands)
  if type(commands) ~= "table" or #commands == 0 then
    error('redis.pipeline takes a list of commands: { {"INCR", key}, {"EXPIRE", key, 2} }', 2)
  end
  for i = 1, #commands do
    local words = commands[i]
    if type(words) ~= "table" then
      error("redis.pipeline: command " .. i .. " is a " .. type(words) .. '; it must be a list of words: {"INCR", key}', 2)
    end
    check("redis.pipeline: command " .. i, words, #words)
  end
  local replies = step(true, commands)
  if replies.err then error(replies.err, 2) end  -- none came: the connection was lost
  return replies
end

return redis
)lua";

// Stands for the contract's file in every message until `told()` puts the name in: Lua would cut a long one.
constexpr char file_mark[] = "\x02";

constexpr std::size_t message_most = 4096;

void* allocate(void* used, void* block, std::size_t old_size, std::size_t new_size) {
  std::size_t& total = *static_cast<std::size_t*>(used);
  if (new_size == 0) {
    std::free(block);
    total -= old_size;
    return nullptr;
  }
  if (new_size > old_size && new_size - old_size > lua_memory_most - std::min(total, lua_memory_most)) return nullptr;
  void* const moved = std::realloc(block, new_size);
  if (moved != nullptr) total += new_size - old_size;
  return moved;
}

class Child;

// What a protected function of one request works on. Lua's errors jump over C++ frames, so whatever
// has a destructor lives here and not in them.
struct Task {
  Child& child;
  Reader in;
  Writer& out;
  Refusal::Kind kind = Refusal::Kind::raised;
  std::int32_t attempt = 0;
};

class Child {
 public:
  explicit Child(std::atomic<std::uint32_t>& progress);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void serve(Reader request, Writer& out);

 private:
  struct Program {
    lua_State* thread;
    int reference;
    std::uint64_t random;  // what math.random is seeded from at each step; 0: it runs on
  };

  void load(Reader in, Writer& out);
  void each(lua_CFunction body, Reader in, Writer& out);
  void program(lua_CFunction body, Reader in, Writer& out);
  void forget(std::int32_t attempt);
  bool guarded(lua_CFunction body, Task& task);
  std::string told(std::string message) const;

  static int load_body(lua_State* L);
  static int arguments_body(lua_State* L);
  static int answers_body(lua_State* L);
  static int run_body(lua_State* L);
  static int resume_body(lua_State* L);
  static int may_step(lua_State* L);
  static int step(lua_State* L);

  void seed_random(lua_State* L, std::uint64_t seed) const;
  void move_on(lua_State* L, Task& task, int given);
  void write_send(lua_State* L, lua_State* thread, Task& task);
  void write_words(lua_State* L, int index, const char* function, Task& task);
  void write_answer(lua_State* L, int index, Task& task);
  [[noreturn]] void shape_error(lua_State* L, Task& task, const char* function, const char* format, ...) const;

  struct Function {
    int reference = LUA_NOREF;
    int line = 0;
  };
  Function& function(std::string_view name);

  std::size_t used_ = 0;
  std::atomic<std::uint32_t>& progress_;
  lua_State* L_;
  std::string file_;
  int redis_ = LUA_NOREF;
  int random_seed_ = LUA_NOREF;
  Function keys_, args_, reply_, take_;
  std::map<std::int32_t, Program> programs_;
  lua_State* running_ = nullptr;
  bool stepped_ = false;
};

Child* child_of(lua_State* L) {
  return static_cast<Child*>(lua_touserdata(L, lua_upvalueindex(1)));
}
Task& task_of(lua_State* L) {
  return *static_cast<Task*>(lua_touserdata(L, 1));
}

void push_text(lua_State* L, std::string_view text) {
  lua_pushlstring(L, text.data(), text.size());
}

void set_number(lua_State* L, const char* name, double value) {
  lua_pushnumber(L, value);
  lua_setfield(L, -2, name);
}

/// A number where Lua would read one, else the text.
void push_quantity(lua_State* L, std::string_view text) {
  std::int64_t whole;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc{} && end == text.data() + text.size()) {
    lua_pushnumber(L, static_cast<double>(whole));
    return;
  }
  push_text(L, text);
  if (lua_isnumber(L, -1)) {
    lua_pushnumber(L, lua_tonumber(L, -1));
    lua_remove(L, -2);
  }
}

std::uint64_t hash(std::string_view bytes) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return value;
}

/// Pushes the call. Returns what math.random is to be seeded from, 0 where the attempt is not told.
std::uint64_t push_call(lua_State* L, Reader& item) {
  const std::string_view bytes = item.text();
  Reader in{bytes};
  lua_createtable(L, 0, 6);
  push_text(L, in.text());
  lua_setfield(L, -2, "key");
  lua_createtable(L, 0, 5);
  push_quantity(L, in.text());
  lua_setfield(L, -2, "capacity");
  push_quantity(L, in.text());
  lua_setfield(L, -2, "refill");
  push_quantity(L, in.text());
  if (lua_type(L, -1) == LUA_TNUMBER) {
    const double period_us = lua_tonumber(L, -1);
    if (std::fmod(period_us, 1e3) == 0) {
      lua_pushnumber(L, period_us / 1e3);
      lua_setfield(L, -3, "period_ms");
    }
    if (std::fmod(period_us, 1e6) == 0) {
      lua_pushnumber(L, period_us / 1e6);
      lua_setfield(L, -3, "period_s");
    }
  }
  lua_setfield(L, -2, "period_us");
  lua_setfield(L, -2, "limit");
  push_quantity(L, in.text());
  lua_setfield(L, -2, "cost");
  set_number(L, "now_us", static_cast<double>(in.number<std::int64_t>()));
  set_number(L, "client", in.number<std::int32_t>());
  const auto attempt = in.number<std::int32_t>();
  set_number(L, "attempt", attempt);
  return attempt == 0 ? 0 : hash(bytes) | 1;
}

/// Pushes a reply as a client's library would hand it over. `element`: inside an array, where a nil
/// would end the list.
void push_reply(lua_State* L, Reader& in, bool element) {
  luaL_checkstack(L, 4, "a reply is nested too deep");
  const auto kind = in.number<Reply::Kind>();
  switch (kind) {
    case Reply::Kind::nil: element ? lua_pushboolean(L, 0) : lua_pushnil(L); return;
    case Reply::Kind::integer: lua_pushnumber(L, static_cast<double>(in.number<std::int64_t>())); return;
    case Reply::Kind::string:
    case Reply::Kind::status: push_text(L, in.text()); return;
    case Reply::Kind::error:
      lua_createtable(L, 0, 1);
      push_text(L, in.text());
      lua_setfield(L, -2, "err");
      return;
    case Reply::Kind::array: {
      const auto count = in.number<std::uint32_t>();
      lua_createtable(L, static_cast<int>(count), 0);
      for (std::uint32_t i = 1; i <= count; ++i) {
        push_reply(L, in, true);
        lua_rawseti(L, -2, static_cast<int>(i));
      }
      return;
    }
  }
}

using NumberText = std::array<char, 40>;

/// A number as a client sends it: whole ones in full, others so that they read back.
std::string_view text_of(double value, NumberText& text) {
  constexpr double whole_most = 9007199254740992.0;  // 2^53
  if (std::isnan(value)) return "nan";               // printf would tell its sign
  const bool whole = std::fabs(value) <= whole_most && value == std::floor(value);
  const auto size = whole ? std::to_chars(text.begin(), text.end(), static_cast<std::int64_t>(value)).ptr - text.begin()
                          : std::snprintf(text.data(), text.size(), "%.17g", value);
  return {text.data(), static_cast<std::size_t>(size)};
}

/// Writes a string or a number, as a word of a command.
void write_word(lua_State* L, int index, Writer& out) {
  if (lua_type(L, index) == LUA_TSTRING) {
    std::size_t size;
    const char* const text = lua_tolstring(L, index, &size);
    out.text({text, size});
    return;
  }
  NumberText text;
  out.text(text_of(lua_tonumber(L, index), text));
}

bool is_word(lua_State* L, int index) {
  return lua_type(L, index) == LUA_TSTRING || lua_type(L, index) == LUA_TNUMBER;
}

/// Writes a value of the contract's table as data.
void write_value(lua_State* L, int index, int depth, Writer& out) {
  luaL_checkstack(L, 4, "the contract is nested too deep");
  if (depth > 8) luaL_error(L, "the contract's table is nested deeper than 8 tables");
  if (out.size() > lua_words_most) luaL_error(L, "the contract's table is larger than 16 MiB");
  switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
      out.number(LuaValue::Kind::boolean);
      out.number<double>(lua_toboolean(L, index));
      return;
    case LUA_TNUMBER:
      out.number(LuaValue::Kind::number);
      out.number<double>(lua_tonumber(L, index));
      return;
    case LUA_TSTRING:
      out.number(LuaValue::Kind::string);
      write_word(L, index, out);
      return;
    case LUA_TFUNCTION: {
      lua_Debug where;
      lua_pushvalue(L, index);
      lua_getinfo(L, ">S", &where);
      out.number(LuaValue::Kind::function);
      out.number<std::int32_t>(where.linedefined);
      return;
    }
    case LUA_TTABLE:
      out.number(LuaValue::Kind::table);
      lua_pushnil(L);
      while (lua_next(L, index) != 0) {
        const int top = lua_gettop(L);
        out.number<std::uint8_t>(1);
        write_value(L, top - 1, depth + 1, out);
        write_value(L, top, depth + 1, out);
        lua_pop(L, 1);
      }
      out.number<std::uint8_t>(0);
      return;
    default: out.number(LuaValue::Kind::nil); return;
  }
}

void only_allowed(lua_State* L) {
  lua_newtable(L);
  for (const char* const name : allowed_globals) {
    lua_getglobal(L, name);
    lua_setfield(L, -2, name);
  }
  lua_pushvalue(L, -1);
  lua_setfield(L, -2, "_G");
  lua_replace(L, LUA_GLOBALSINDEX);
  lua_getglobal(L, "string");
  lua_pushnil(L);
  lua_setfield(L, -2, "dump");
  lua_pop(L, 1);
}

Child::Child(std::atomic<std::uint32_t>& progress) : progress_(progress), L_(lua_newstate(allocate, &used_)) {
  if (L_ == nullptr) std::abort();
  luaL_openlibs(L_);
  lua_getglobal(L_, "math");
  lua_getfield(L_, -1, "randomseed");
  random_seed_ = luaL_ref(L_, LUA_REGISTRYINDEX);
  lua_pop(L_, 1);

  if (luaL_loadbuffer(L_, prelude, sizeof prelude - 1, "=redis") != 0) std::abort();
  for (const lua_CFunction made_here : {step, may_step}) {
    lua_pushlightuserdata(L_, this);
    lua_pushcclosure(L_, made_here, 1);
  }
  for (const char* const name : {"error", "type", "select"}) lua_getglobal(L_, name);
  lua_call(L_, 5, 1);
  redis_ = luaL_ref(L_, LUA_REGISTRYINDEX);
  only_allowed(L_);
}

std::string Child::told(std::string message) const {
  for (std::size_t at = 0; (at = message.find(file_mark, at)) != std::string::npos; at += file_.size())
    message.replace(at, sizeof file_mark - 1, file_);
  if (message.size() > message_most) message.resize(message_most);
  if (message == "not enough memory") message += "; a contract's Lua may use 256 MiB";
  return message;
}

void Child::shape_error(lua_State* L, Task& task, const char* name, const char* format, ...) const {
  task.kind = Refusal::Kind::wrong_shape;
  lua_pushfstring(L, "%s:%d: %s: ", file_mark, task.child.function(name).line, name);
  va_list values;
  va_start(values, format);
  lua_pushvfstring(L, format, values);
  va_end(values);
  lua_concat(L, 2);
  lua_error(L);
  std::abort();  // lua_error does not return, but does not say so.
}

/// Runs `body`; where it raises, takes back what it wrote and writes a refusal instead.
bool Child::guarded(lua_CFunction body, Task& task) {
  const std::size_t start = task.out.size();
  const int status = lua_cpcall(L_, body, &task);
  if (status == 0) {
    lua_settop(L_, 0);
    return true;
  }
  task.out.cut(start);
  task.out.number(Outcome::refusal);
  task.out.number(task.kind);
  std::size_t size = 0;
  const char* const text = lua_tolstring(L_, -1, &size);
  task.out.text(told(text != nullptr ? std::string{text, size}
                                     : "an error that is a " + std::string{luaL_typename(L_, -1)} + ", not a message"));
  lua_settop(L_, 0);
  if (status == LUA_ERRMEM) lua_gc(L_, LUA_GCCOLLECT, 0);
  return false;
}

void Child::serve(Reader in, Writer& out) {
  const auto request = in.number<Request>();
  progress_ = 0;
  switch (request) {
    case Request::load: return load(in, out);
    case Request::arguments: return each(arguments_body, in, out);
    case Request::answers: return each(answers_body, in, out);
    case Request::run: return program(run_body, in, out);
    case Request::resume: return program(resume_body, in, out);
    case Request::forget: return forget(in.number<std::int32_t>());
  }
}

void Child::load(Reader in, Writer& out) {
  file_ = in.text();
  Task task{*this, in, out};
  progress_ = 1;
  guarded(load_body, task);
}

int Child::load_body(lua_State* L) {
  Task& task = task_of(L);
  const std::string_view source = task.in.text();
  // Mode "t": text only.
  const char name[] = {'=', file_mark[0], 0};
  if (luaL_loadbufferx(L, source.data(), source.size(), name, "t") != 0) return lua_error(L);
  lua_call(L, 0, 1);
  task.out.number(Outcome::result);
  write_value(L, 2, 0, task.out);
  if (lua_type(L, 2) != LUA_TTABLE) return 0;
  for (const char* const field : {"keys", "args", "reply", "take"}) {
    lua_getfield(L, 2, field);
    if (lua_type(L, -1) != LUA_TFUNCTION) {
      lua_pop(L, 1);
      continue;
    }
    lua_Debug where;
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &where);
    task.child.function(field) = {luaL_ref(L, LUA_REGISTRYINDEX), where.linedefined};
  }
  return 0;
}

Child::Function& Child::function(std::string_view name) {
  if (name == "keys") return keys_;
  if (name == "args") return args_;
  if (name == "reply") return reply_;
  return take_;
}

void Child::each(lua_CFunction body, Reader in, Writer& out) {
  const auto count = in.number<std::uint32_t>();
  for (std::uint32_t i = 1; i <= count; ++i) {
    progress_.store(i, std::memory_order_relaxed);
    Task task{*this, in.part(), out};
    guarded(body, task);
  }
}

void Child::seed_random(lua_State* L, std::uint64_t seed) const {
  if (seed == 0) return;
  lua_rawgeti(L, LUA_REGISTRYINDEX, random_seed_);
  lua_pushnumber(L, static_cast<double>(seed >> 11));
  lua_call(L, 1, 0);
}

int Child::arguments_body(lua_State* L) {
  Task& task = task_of(L);
  Child& child = task.child;
  task.child.seed_random(L, push_call(L, task.in));
  task.out.number(Outcome::result);
  for (const char* const name : {"keys", "args"}) {
    lua_settop(L, 2);
    lua_rawgeti(L, LUA_REGISTRYINDEX, child.function(name).reference);
    lua_pushvalue(L, 2);
    lua_call(L, 1, 1);
    child.write_words(L, 3, name, task);
  }
  return 0;
}

void Child::write_words(lua_State* L, int index, const char* name, Task& task) {
  if (lua_type(L, index) != LUA_TTABLE)
    shape_error(L, task, name, "returned %s; it must return a list of strings and numbers", luaL_typename(L, index));
  const std::size_t start = task.out.size();
  const auto count = static_cast<int>(lua_objlen(L, index));
  task.out.number(static_cast<std::uint32_t>(count));
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(L, index, i);
    if (!is_word(L, -1))
      shape_error(L, task, name, "element %d is %s; it must be a string or a number", i, luaL_typename(L, -1));
    write_word(L, -1, task.out);
    lua_pop(L, 1);
    if (task.out.size() - start > lua_words_most)
      shape_error(L, task, name, "more than 16 MiB; no Redis script takes that");
  }
  int entries = 0;
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) ++entries;
  if (entries != count)
    shape_error(L, task, name,
                "is a list of %d with %d entries besides; it must be a list alone, and a nil inside ends one", count,
                entries - count);
}

int Child::answers_body(lua_State* L) {
  Task& task = task_of(L);
  lua_rawgeti(L, LUA_REGISTRYINDEX, task.child.reply_.reference);
  push_reply(L, task.in, false);
  lua_call(L, 1, 1);
  task.child.write_answer(L, 2, task);
  return 0;
}

/// Microseconds in one of the unit that a field's name ends with; 0 where it is no time field.
double micros_per(std::string_view field, std::string_view stem) {
  if (!field.starts_with(stem)) return 0;
  const std::string_view unit = field.substr(stem.size());
  return unit == "_us" ? 1 : unit == "_ms" ? 1e3 : unit == "_s" ? 1e6 : 0;
}

/// `value` units as whole microseconds: those whose nearest double in that unit is `value`, so that
/// 0.1 s is 100000 and a third of a second is none.
std::optional<std::int64_t> whole_micros(double value, double scale) {
  const double micros = std::nearbyint(value * scale);
  if (!(std::fabs(micros) <= 9007199254740992.0) || micros / scale != value) return std::nullopt;
  return static_cast<std::int64_t>(micros);
}

void Child::write_answer(lua_State* L, int index, Task& task) {
  const char* const name = reply_.reference != LUA_NOREF ? "reply" : "take";
  if (lua_type(L, index) != LUA_TTABLE)
    shape_error(L, task, name, "returned %s; it must return a table like { allowed = true }", luaL_typename(L, index));
  bool told_allowed = false;
  Answer answer;
  for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      shape_error(L, task, name, "returned a list; it must return a table like { allowed = true }");
    const std::string_view field = lua_tostring(L, -2);
    if (field == "allowed") {
      if (lua_type(L, -1) != LUA_TBOOLEAN)
        shape_error(L, task, name, "allowed is a %s; it must be true or false", luaL_typename(L, -1));
      told_allowed = true;
      answer.allowed = lua_toboolean(L, -1) != 0;
      continue;
    }
    const double retry = micros_per(field, "retry_after");
    const double reset = micros_per(field, "reset_after");
    if (field != "remaining" && retry == 0 && reset == 0)
      shape_error(L, task, name,
                  "%s is no field of an answer; the fields are allowed, remaining, retry_after_us, _ms or _s and "
                  "reset_after_us, _ms or _s",
                  field.data());
    if (lua_type(L, -1) != LUA_TNUMBER)
      shape_error(L, task, name, "%s is a %s; it must be a number, or not be there", field.data(),
                  luaL_typename(L, -1));
    const double value = lua_tonumber(L, -1);
    const auto whole = whole_micros(value, field == "remaining" ? 1 : retry + reset);
    if (!whole) {
      NumberText digits;
      push_text(L, text_of(value, digits));
      shape_error(L, task, name, "%s is %s; it must be a whole number%s, at most 2^53", field.data(),
                  lua_tostring(L, -1), field == "remaining" ? "" : " of microseconds");
    }
    std::optional<std::int64_t>& told = field == "remaining" ? answer.remaining
                                        : retry != 0         ? answer.retry_after_us
                                                             : answer.reset_after_us;
    if (told || (retry != 0 && answer.never))
      shape_error(L, task, name, "%s is told in two units; one is enough", retry != 0 ? "retry_after" : "reset_after");
    if (retry != 0 && *whole < 0)
      answer.never = true;
    else
      told = whole;
  }
  if (!told_allowed) shape_error(L, task, name, "allowed is not there; it must be true or false");

  Writer& out = task.out;
  out.number(Outcome::result);
  out.number<std::uint8_t>(answer.allowed);
  out.number<std::uint8_t>(answer.never);
  for (const auto& told : {answer.retry_after_us, answer.remaining, answer.reset_after_us}) {
    out.number<std::uint8_t>(told.has_value());
    if (told) out.number<std::int64_t>(*told);
  }
}

void Child::program(lua_CFunction body, Reader in, Writer& out) {
  progress_ = 1;
  Task task{*this, in, out};
  task.attempt = task.in.number<std::int32_t>();
  const bool went_well = guarded(body, task);
  const auto found = programs_.find(task.attempt);
  if (!went_well || (found != programs_.end() && lua_status(found->second.thread) != LUA_YIELD)) forget(task.attempt);
}

void Child::forget(std::int32_t attempt) {
  const auto found = programs_.find(attempt);
  if (found == programs_.end()) return;
  luaL_unref(L_, LUA_REGISTRYINDEX, found->second.reference);
  programs_.erase(found);
}

int Child::run_body(lua_State* L) {
  Task& task = task_of(L);
  Child& child = task.child;
  child.forget(task.attempt);
  lua_State* const thread = lua_newthread(L);
  const int reference = luaL_ref(L, LUA_REGISTRYINDEX);
  Program& program = child.programs_[task.attempt] = Program{thread, reference, 0};
  lua_rawgeti(L, LUA_REGISTRYINDEX, child.take_.reference);
  lua_rawgeti(L, LUA_REGISTRYINDEX, child.redis_);
  program.random = push_call(L, task.in);
  const std::size_t start = task.out.size();
  const auto replies = task.in.number<std::uint32_t>();
  child.move_on(L, task, 3);
  for (std::uint32_t i = 0; i < replies; ++i) {
    // The host told these replies before: up to the last one they lead to the same sends again.
    if (lua_status(thread) != LUA_YIELD)
      return luaL_error(L, "take did something else when it was run again with the same replies");
    task.out.cut(start);
    push_reply(L, task.in, false);
    child.move_on(L, task, 1);
  }
  return 0;
}

int Child::resume_body(lua_State* L) {
  Task& task = task_of(L);
  push_reply(L, task.in, false);
  task.child.move_on(L, task, 1);
  return 0;
}

/// Gives the top `given` values to the attempt's program and writes what it does next.
void Child::move_on(lua_State* L, Task& task, int given) {
  Program& program = programs_.at(task.attempt);
  lua_State* const thread = program.thread;
  if (program.random != 0) {
    seed_random(L, program.random);
    program.random = program.random * 0x5851f42d4c957f2d + 2;  // stays odd, so never 0
  }
  lua_xmove(L, thread, given);
  running_ = thread;
  stepped_ = false;
  const int status = lua_resume(thread, lua_status(thread) == LUA_YIELD ? given : given - 1);
  running_ = nullptr;
  if (status == LUA_YIELD) {
    if (!stepped_)
      shape_error(L, task, "take",
                  "yielded by itself; only redis.call, redis.pcall and redis.pipeline suspend a program");
    write_send(L, thread, task);
    return;
  }
  lua_xmove(thread, L, lua_gettop(thread) > 0 ? 1 : 0);
  if (status != 0) lua_error(L);
  if (lua_gettop(L) == 1) lua_pushnil(L);
  write_answer(L, lua_gettop(L), task);
}

/// The words were checked by the prelude; tables that change under a metatable are nobody's business.
void Child::write_send(lua_State* L, lua_State* thread, Task& task) {
  Writer& out = task.out;
  const std::size_t start = out.size();
  out.number(Outcome::send);
  out.number<std::uint8_t>(lua_toboolean(thread, 1) != 0);
  lua_xmove(thread, L, 1);
  lua_settop(thread, 0);
  const int commands = lua_gettop(L);
  const auto count = static_cast<int>(lua_objlen(L, commands));
  out.number(static_cast<std::uint32_t>(count));
  for (int i = 1; i <= count; ++i) {
    lua_rawgeti(L, commands, i);
    const auto words = static_cast<int>(lua_objlen(L, -1));
    out.number(static_cast<std::uint32_t>(words));
    for (int w = 1; w <= words; ++w) {
      lua_rawgeti(L, -1, w);
      write_word(L, -1, out);
      lua_pop(L, 1);
      if (out.size() - start > lua_words_most) shape_error(L, task, "take", "sends more than 16 MiB in one step");
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

/// Only the program's own coroutine can be suspended from here: another would yield to whoever resumed it.
int Child::may_step(lua_State* L) {
  lua_pushboolean(L, L == child_of(L)->running_);
  return 1;
}

int Child::step(lua_State* L) {
  Child& child = *child_of(L);
  child.stepped_ = true;
  return lua_yield(L, lua_gettop(L));
}

/// False when the host has gone.
bool read_all(int socket, char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(socket, bytes, size, 0);
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool write_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

}  // namespace

void run_lua_child(int socket, std::atomic<std::uint32_t>& progress, void (*lock_up)()) {
  Child child{progress};
  lock_up();
  std::string request;
  Writer out;
  for (std::uint32_t size; read_all(socket, reinterpret_cast<char*>(&size), sizeof size);) {
    request.resize(size);
    if (!read_all(socket, request.data(), size)) break;
    out.clear();
    out.part([&] { child.serve(Reader{request}, out); });
    if (!write_all(socket, out.bytes())) break;
  }
  ::_exit(0);
}

}  // namespace weir::harness
