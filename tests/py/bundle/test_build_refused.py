"""The bundler: sources it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from lua_sources import refusal

HEAD = 'local m = require "jqlua.m"\n'
M_USED = HEAD + "return m.f()"


def module(body: str) -> str:
    return f"local M = {{}}\n{body}\nreturn M\n"


REFUSED_MODULES = {
    "several values": ("local x, y = 1, 2", "m: expected a function or a single value, got local x, y = 1, 2"),
    "M as a value": ("function M.f() return M end", "m: module jqlua.m has no ''"),
    "unknown member": ("function M.f() return M.g() end", "m: module jqlua.m has no 'g'"),
    "unknown module": ('local x = require "jqlua.nothing"', "there is no module jqlua.nothing"),
}


class TestRefused:
    @pytest.mark.parametrize("case", REFUSED_MODULES)
    def test_a_module_outside_the_subset(self, tmp_path: Path, case: str) -> None:
        body, expected = REFUSED_MODULES[case]
        assert refusal(tmp_path, M_USED, m=module(body)) == expected

    def test_a_circle_of_modules(self, tmp_path: Path) -> None:
        a, b = module('local b = require "jqlua.b"'), module('local a = require "jqlua.a"')
        shown = refusal(tmp_path, 'local a = require "jqlua.a"\nreturn 1', a=a, b=b)
        assert shown == "modules require each other: jqlua.a"

    def test_a_script(self, tmp_path: Path) -> None:
        assert (
            refusal(tmp_path, HEAD + "return m.g()", m=module("function M.f() end")) == "op: module jqlua.m has no 'g'"
        )
