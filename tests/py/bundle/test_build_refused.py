"""The bundler: sources it refuses, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from lua_sources import refusal

HEAD = 'local m = require "jqlua.m"\n'
M_USED = HEAD + "return m.f()"


def module(body: str) -> str:
    return f"local M = {{}}\n{body}\nreturn M\n"


NEITHER = "at the top level of a module stand functions and single values"
REFUSED_MODULES = {
    "several values": ("local x, y = 1, 2", f"jqlua/m.lua:2: {NEITHER}"),
    "loop": ("for i = 1, 2 do end", "jqlua/m.lua:2: 'for' cannot begin a statement of a module"),
    "twice": ("local x = 1\nlocal x = 2", "jqlua/m.lua:3: 'x' is defined twice"),
    "assignment": ("local n = 0\nfunction M.f()\n  n = n + 1\nend", "jqlua/m.lua:4: 'n' is assigned to"),
    "M as a value": ("function M.f() return M end", "jqlua/m.lua:2: module jqlua.m has no ''"),
    "unknown module": (
        'local x = require "jqlua.nothing"',
        "jqlua/m.lua:2: there is no module jqlua.nothing",
    ),
    "require inside": ('function M.f() return require "jqlua.m" end', "jqlua/m.lua:2: require only as"),
    "each other": ("function M.f() return M.g() end\nfunction M.g() return M.f() end", "m.f -> m.g -> m.f"),
    "open string": ('local x = "abc', "jqlua/m.lua:2: not Lua"),
}


class TestRefused:
    @pytest.mark.parametrize("case", REFUSED_MODULES)
    def test_a_module_outside_the_subset(self, tmp_path: Path, case: str) -> None:
        body, expected = REFUSED_MODULES[case]
        assert expected in refusal(tmp_path, M_USED, m=module(body))

    def test_a_circle_of_modules(self, tmp_path: Path) -> None:
        a, b = module('local b = require "jqlua.b"'), module('local a = require "jqlua.a"')
        shown = refusal(tmp_path, 'local a = require "jqlua.a"\nreturn 1', a=a, b=b)
        assert shown == "jqlua/b.lua:2: modules require each other: jqlua.a"

    @pytest.mark.parametrize(
        "script, expected",
        [
            ("-- @flags none\nreturn 1", "op.lua:1: the head needs one line"),
            ("-- @flags write\n" + HEAD + "return m.g()", "op.lua:3: module jqlua.m has no 'g'"),
            ("-- @flags write\nlocal x = 1\n" + HEAD + "return 1", "op.lua:3: require only as"),
        ],
    )
    def test_a_script(self, tmp_path: Path, script: str, expected: str) -> None:
        assert expected in refusal(tmp_path, script, m=module("function M.f() end"))
