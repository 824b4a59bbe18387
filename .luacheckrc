-- Lua here runs in one of two places: inside Redis, or in the gate's child process.
max_line_length = 120

-- What Redis gives a script. No os but os.clock, no io, no print, no require, and its tables are read-only.
stds.redis = {
  globals = {},
  read_globals = {
    "KEYS", "ARGV", "_VERSION",
    "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget", "rawset", "select",
    "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall", "gcinfo", "collectgarbage", "coroutine",
    "load", "loadstring",
    redis = { fields = {
      "call", "pcall", "error_reply", "status_reply", "sha1hex", "log", "LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE",
      "LOG_WARNING", "setresp", "set_repl", "REPL_ALL", "REPL_AOF", "REPL_SLAVE", "REPL_REPLICA", "REPL_NONE",
      "replicate_commands", "breakpoint", "debug", "acl_check_cmd", "register_function", "REDIS_VERSION",
      "REDIS_VERSION_NUM" } },
    math = { other_fields = true }, string = { other_fields = true }, table = { other_fields = true },
    os = { fields = { "clock" } },
    bit = { other_fields = true }, cjson = { other_fields = true }, cmsgpack = { other_fields = true },
    struct = { fields = { "pack", "unpack", "size" } },
  },
}

-- What a contract and a client program have: LuaJIT without anything that reaches outside.
stds.contract = {
  read_globals = {
    "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget", "rawset", "select",
    "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall",
    math = { other_fields = true }, string = { other_fields = true }, table = { other_fields = true },
    bit = { other_fields = true }, coroutine = { other_fields = true },
  },
}

std = "redis"
files["lua/contracts"] = { std = "contract" }
