"""The bundler: functions in the place of their calls. Every case runs both ways, and must reply the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jqmaster.luabuild import build
from lua_sources import run, write  # noqa: F401

HEAD = 'local m = require "jqlua.m"\n'


def module(body: str) -> str:
    return f"local M = {{}}\n{body}\nreturn M\n"


# name: (functions of the module, script, reply, functions left in the chunk)
CASES: dict[str, tuple[str, str, Any, int]] = {
    "expression": (
        "function M.between(n, low, high) return n >= low and n <= high end",
        "local t = { n = 3 }\n"
        "return { m.between(t.n, 1, 5) and 1 or 0, not m.between(#ARGV, 1, 2) and 1 or 0 }",
        [1, 0],
        0,
    ),
    "expression binds as one": (
        "function M.sum(a, b) return a + b end",
        "local x = 2\nreturn { m.sum(x, 1) * 2, 10 - m.sum(x, x), m.sum(x - 1, 1) .. m.sum(x, 5) }",
        [6, 6, b"27"],
        0,
    ),
    "expression with a missing argument": (
        "function M.value(a, b) return b == nil and a end",
        "return m.value(7)",
        7,
        0,
    ),
    "expression with a literal argument": (
        'function M.f(s, n) return s:len() + #s + n end\nM.TEXT = "abc"',
        'return { m.f("ab", 1), m.f(m.TEXT, -1) }',
        [5, 5],
        0,
    ),
    "expression whose argument is a call": (
        "function M.twice(n) return n + n end",
        "local calls = 0\nlocal function next() calls = calls + 1 return calls end\n"
        "return { m.twice(next()), calls }",
        [2, 1],
        1,
    ),
    "expression with a field of the parameter's name": (
        "function M.f(name) return #{ name = 1, name } + name end",
        "local name = 4\nreturn m.f(name)",
        5,
        0,
    ),
    "several values are kept": (
        'function M.pair(s) return s:match("(%d)-(%d)") end',
        'local function count(...) return select("#", ...) end\nlocal a, b = m.pair("1-2")\n'
        'return { a, b, count(m.pair("3-4")), count(m.pair("3-4"), 1), { m.pair("5-6") } }',
        [b"1", b"2", 2, 2, [b"5", b"6"]],
        1,
    ),
    "a global hidden by the caller": (
        "function M.kind(x) return type(x) .. '' end",
        'local type = "mine"\nreturn { m.kind(1), type }',
        [b"number", b"mine"],
        1,
    ),
    "statement": (
        "local state = {}\nfunction M.put(a, b) local sum = a + b state.sum = sum end\nM.state = state",
        "local sum = 1\nm.put(sum, 2)\nreturn { sum, m.state.sum }",
        [1, 3],
        0,
    ),
    "statement that leaves early": (
        "local state = {}\nM.state = state\n"
        "function M.put(a) if a > 1 then state.x = 1 return true end state.x = 2 end",
        "m.put(tonumber(ARGV[1]))\nreturn m.state.x",
        1,
        0,
    ),
    "local": (
        "function M.f(a) local b = a * 2 return b + 1 end",
        "local x = m.f(3)\nreturn x",
        7,
        0,
    ),
    "local with early returns": (
        "function M.f(a) if a == 1 then return 10 elseif a == 2 then return end\n"
        "if a == 3 then return 30, 31 end end",
        "local out = {}\nfor i = 1, 4 do\nlocal x, y = m.f(i)\nout[i] = (x or 0) + (y or 0)\nend\nreturn out",
        [10, 0, 61, 0],
        0,
    ),
    "a local named as one inside": (
        "function M.f(a) local x = a + 1 return x end",
        "local x = m.f(1)\nreturn x",
        2,
        0,
    ),
    "a local named as in the argument": (
        "function M.f(a) a = a + 1 return a end",
        "local x = 5\nlocal x = m.f(x)\nreturn x",
        6,
        0,
    ),
    "returns inside loops": (
        "function M.find(list, wanted)\nfor i, row in ipairs(list) do\nlocal j = 0\nwhile j < #row do\n"
        "j = j + 1\nif row[j] == wanted then return i, j end\nend\n"
        "repeat local z = 1 if wanted == 0 then return -1 end until z\n"
        "end\nreturn 0 end",
        "local out = {}\nfor k, wanted in ipairs({ 5, 3, 9, 0 }) do\n"
        "local a, b = m.find({ { 1, 2 }, { 3, 4, 5 } }, wanted)\nout[k] = a * 10 + (b or 0)\nend\nreturn out",
        [23, 21, 0, -10],
        0,
    ),
    "assignment": (
        "function M.f(a) local b = a .. '!' return b end\n"
        "function M.g(a) if a then return 1, 2 end return 3 end",
        "local x, t = 'y', {}\nx = m.f(x)\nt.n, t[1] = m.g(false)\nreturn { x, t.n, t[1] or 0 }",
        [b"y!", 3, 0],
        0,
    ),
    "assignment of nothing": (
        "function M.f(a) if a > 5 then return a end end",
        "local x = 1\nx = m.f(x)\nreturn { x == nil and 1 or 0 }",
        [1],
        0,
    ),
    "tail call": (
        "function M.f(a) if a == 1 then return 1, 2 end\n"
        "for i = 1, 3 do if i == a then return i * 10 end end end",
        "if ARGV[1] == '2' then\nreturn m.f(2)\nend\nreturn 0",
        20,
        0,
    ),
    "tail call that returns nothing": (
        "function M.f(a) if a == 1 then return 5 end end",
        "local function g(n) if n > 0 then return m.f(n) end return 9 end\n"
        "return { g(1), g(2) == nil and 1 or 0, g(0) }",
        [5, 1, 9],
        0,
    ),
    "condition": (
        "function M.odd(list) for _, n in ipairs(list) do if n % 2 == 1 then return true end end\n"
        "return false end",
        "local out = 0\nfor i = 1, 3 do\nif not m.odd({ i, 2 }) then\nout = out + 1\nelseif i == 3 then\n"
        "out = out + 10\nend\nend\nreturn out",
        11,
        0,
    ),
    "functions within functions": (
        "local function low(a) if a > 2 then return a * 2 end return a end\n"
        "local function mid(a) local x = low(a) if x > 4 then return x + 1 end return x end\n"
        "function M.high(a) local y = 1 return mid(a + y) end",
        "local y = 10\nlocal x = m.high(y)\nreturn { x, y }",
        [23, 10],
        0,
    ),
    "a parameter of one inside another's return": (
        "local function inner(p) local q = p + 1 return q end\n"
        "function M.outer(a) local b = a return inner(b) end",
        "local p, q = 1, 1\np = m.outer(5)\nlocal q = m.outer(p)\nreturn { p, q }",
        [6, 7],
        0,
    ),
    "closures made inside": (
        "function M.make(n) local count = n return function() count = count + 1 return count end end",
        "local out = {}\nfor i = 1, 2 do\nlocal f = m.make(i * 10)\nf()\nout[i] = f()\nend\nreturn out",
        [12, 22],
        0,
    ),
    "more arguments than parameters": (
        "local seen = {}\nfunction M.note() seen.n = (seen.n or 0) + 1 return 1 end\nM.seen = seen\n"
        "function M.f(a) local b = a return b end",
        "local x = m.f(1, m.note())\nreturn { x, m.seen.n }",
        [1, 1],
        1,
    ),
    "used as a value": (
        "function M.f(a) local b = a return b end",
        "local ok, x = pcall(m.f, 3)\nreturn x",
        3,
        1,
    ),
    "called by itself": (
        "function M.f(n) if n == 0 then return 0 end local rest = M.f(n - 1) return rest + n end",
        "local x = m.f(4)\nreturn x",
        10,
        1,
    ),
    "varargs": (
        "function M.f(...) local n = select('#', ...) return n end",
        "local n = m.f(1, nil, 3)\nreturn n",
        3,
        1,
    ),
    "a line that begins with a bracket": (
        "local function id(x) return x end\nfunction M.f(a)\n(id)(a).n = 5 return a.n end",
        "local t = {}\nlocal n = m.f(t)\nreturn n",
        5,
        1,
    ),
    "only a cold function calls it": (
        "local function helper(a) local b = a return b end\n"
        "---@cold\nfunction M.rare(a) return helper(a) end",
        "return m.rare(2)",
        2,
        1,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_means_the_same(run: Any, tmp_path: Path, case: str) -> None:
    functions, script, reply, left = CASES[case]
    assert run(HEAD + script, 2, m=module(functions)) == reply
    source = build(tmp_path)["op"].source
    tops = [line for line in source.splitlines() if line.startswith("local function m_")]
    # Nothing is asked of a cold function's helpers, which are defined in it.
    assert len(tops[:1] if "cold" in case else tops) == left, source


def test_it_stops_before_a_function_uses_too_many_outer_locals(tmp_path: Path) -> None:
    """A function may use 60; two that use 40 each are not made one."""
    tables = "".join(f"M.t{n} = {{}}\n" for n in range(80))
    first, second = (", ".join(f"M.t{n}" for n in span) for span in (range(40), range(40, 80)))
    functions = f"local function a() local t = {{ {first} }} return t end\n"
    functions += f"local function b() local t = {{ {second} }} local u = a() return t end\n"
    functions += "function M.f() return b() end\nfunction M.g() M.f() return M.f() end"
    script = HEAD + "m.g()\nreturn #m.g()"
    source = build(write(tmp_path, script, m=module(tables + functions)))["op"].source
    assert "local function m_a()" in source
