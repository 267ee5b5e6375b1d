-- Redis runs Lua 5.1 with these globals, and without os and io.
std = {
  globals = {},
  read_globals = {
    "KEYS", "ARGV", "redis", "cjson", "cmsgpack", "bit", "struct",
    "_VERSION", "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget",
    "rawset", "require", "select", "setmetatable", "string", "table", "math", "tonumber", "tostring", "type",
    "unpack", "xpcall", "coroutine",
  },
}
max_line_length = 120
max_cyclomatic_complexity = false
self = false
files["jqlua"] = { globals = { "KEPT" } } -- see jqlua/base/memory.lua
files["scripts"] = { read_globals = { "HEAD" } } -- which the build fills in
files["tests/lua"] = { std = "lua51+busted", read_globals = { "KEYS", "ARGV", "redis", "cmsgpack", "struct", "bit" } }
files["examples/lua"] = { std = "lua51" }
exclude_files = { "build", "dist", ".venv", "bench/**/node_modules", "node_modules" }
