"""The bundler: sources it refuses, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lua_sources import refusal

HEAD = 'local m = require "jqlua.m"\n'
M_USED = HEAD + "return m.f()"


def module(body: str) -> str:
    return f"local M = {{}}\n{body}\nreturn M\n"


REFUSED_MODULES = {
    "statement": ('print("x")', "jqlua/m.lua:2: 'print' cannot stand at a module's top level"),
    "loop": ("for i = 1, 2 do end", "jqlua/m.lua:2: 'for' cannot stand"),
    "method": ("function M:f() end", "jqlua/m.lua:2: 'function' cannot stand"),
    "global function": ("function f() end", "jqlua/m.lua:2: 'function' cannot stand"),
    "two fields": ("M.a, M.b = 1, 2", "jqlua/m.lua:2: 'M' cannot stand"),
    "no value": ("local x", "jqlua/m.lua:2: 'x' has no value"),
    "several values of a call": ("local x, y = f()", "jqlua/m.lua:2: one name, one value"),
    "twice": ("local x = 1\nlocal x = 2", "jqlua/m.lua:3: 'x' is defined twice"),
    "twice in M": ("M.x = 1\nfunction M.x() end", "jqlua/m.lua:3: 'M.x' is defined twice"),
    "assignment": ("local n = 0\nfunction M.f()\nn = n + 1\nend", "jqlua/m.lua:4: 'n' is assigned to"),
    "assignment in a list": (
        "M.n = 0\nfunction M.f()\nlocal t = {}\nt.x, M.n = 1, 2\nend",
        "m.lua:5: 'n' is assigned",
    ),
    "first of a list": ("local n = 0\nfunction M.f(t)\nn, t[1].x = 1, 2\nend", "m.lua:4: 'n' is assigned"),
    "shadowing local": (
        "local n = 1\nfunction M.f()\nlocal n = 2\nreturn n\nend",
        "jqlua/m.lua:4: 'n' shadows",
    ),
    "shadowing parameter": ("local n = 1\nfunction M.f(a, n)\nreturn n\nend", "jqlua/m.lua:3: 'n' shadows"),
    "shadowing inner parameter": ("local n = 1\nM.t = { function(n) end }", "jqlua/m.lua:3: 'n' shadows"),
    "shadowing loop": (
        "local n = 1\nfunction M.f()\nfor _, n in pairs({}) do end\nend",
        "m.lua:4: 'n' shadows",
    ),
    "shadowing function": (
        "local n = 1\nfunction M.f()\nlocal function n() end\nend",
        "m.lua:4: 'n' shadows",
    ),
    "shadowing M": ("function M.f(M) end", "jqlua/m.lua:2: 'M' shadows"),
    "M as a value": ("function M.f() return M end", "jqlua/m.lua:2: 'M' may only be used as M.<item>"),
    "M by key": ('function M.f() return M["f"] end', "jqlua/m.lua:2: 'M' may only be used as"),
    "unknown item": ("function M.value() end\nfunction M.f() return M.valeu end", "did you mean 'value'?"),
    "unknown module": (
        'local x = require "jqlua.nothing"',
        "jqlua/m.lua:2: there is no module jqlua.nothing",
    ),
    "other module": ('local x = require "socket"', 'jqlua/m.lua:2: expected require "jqlua.<module>"'),
    "require inside": ('function M.f() return require "jqlua.m" end', "jqlua/m.lua:2: require only as"),
    "own circle": ('local m = require "jqlua.m"', "modules require each other: m -> m"),
    "before it is defined": (
        "function M.f() return g() end\nlocal function g() end",
        "m.lua:2: 'g' is used before",
    ),
    "value before": ("M.A = M.B\nM.B = 1", "jqlua/m.lua:2: 'B' is used before it is defined"),
    "each other": ("function M.f() return M.g() end\nfunction M.g() return M.f() end", "m.f -> m.g -> m.f"),
    "open string": ('local x = "abc', "jqlua/m.lua:2: not Lua"),
    "open comment": ("--[[ abc", "jqlua/m.lua:2: not Lua"),
    "bad number": ("local x = 12ab", "jqlua/m.lua:2: not Lua"),
    "stray bracket": ("local x = { 1, (2 }", "jqlua/m.lua:2: '}' closes ("),
    "missing end": ("function M.f() if true then end", "jqlua/m.lua:2: this function has no end"),
}


class TestRefused:
    @pytest.mark.parametrize("case", REFUSED_MODULES)
    def test_a_module_outside_the_subset(self, tmp_path: Path, case: str) -> None:
        body, expected = REFUSED_MODULES[case]
        assert expected in refusal(tmp_path, M_USED, m=module(body))

    def test_a_module_that_does_not_return_its_table(self, tmp_path: Path) -> None:
        assert "must end in 'return M'" in refusal(tmp_path, M_USED, m="local M = {}\nfunction M.f() end\n")
        assert "'local N = {}' is missing" in refusal(tmp_path, M_USED, m="local M = {}\nreturn N")

    def test_a_circle_of_modules_is_shown(self, tmp_path: Path) -> None:
        a, b = module('local b = require "jqlua.b"'), module('local a = require "jqlua.a"')
        shown = refusal(tmp_path, 'local a = require "jqlua.a"\nreturn 1', a=a, b=b)
        assert shown == "jqlua/b.lua:2: modules require each other: a -> b -> a"

    @pytest.mark.parametrize(
        "script, expected",
        [
            ("-- @flags none\nreturn 1", "op.lua:1: the head needs one line"),
            ("-- @flags write\n-- @flags read\nreturn 1", "op.lua:1: the head needs one line"),
            ("local x = 1 -- @flags write\nreturn x", "op.lua:1: the head needs one line"),
            ("-- @flags write\nlocal x = 1", "a script must end in a return"),
            ("-- @flags write\n" + HEAD + "return m", "op.lua:3: 'm' may only be used as m.<item>"),
            ("-- @flags write\n" + HEAD + "return m.g()", "op.lua:3: module jqlua.m has no 'g'"),
            ("-- @flags write\n" + HEAD + "local m = 1\nreturn 1", "op.lua:3: 'm' shadows"),
            ("-- @flags write\n" + HEAD + "m.f = 1\nreturn 1", "op.lua:3: 'f' is assigned to"),
            ("-- @flags write\n" + HEAD + HEAD + "return 1", "op.lua:3: 'm' is defined twice"),
            ("-- @flags write\nlocal x = m.f()\n" + HEAD + "return 1", "op.lua:2: 'm' is used before"),
            ("-- @flags write\nif true then\n" + HEAD + "end\nreturn 1", "op.lua:3: require only as"),
            (
                '-- @flags write\nlocal x = require "jqlua.y"\nreturn 1',
                "op.lua:2: there is no module jqlua.y",
            ),
        ],
    )
    def test_a_script(self, tmp_path: Path, script: str, expected: str) -> None:
        assert expected in refusal(tmp_path, script, m=module("function M.f() end"))
