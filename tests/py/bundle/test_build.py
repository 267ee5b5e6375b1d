"""The bundler: what it makes of modules and scripts."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from jqmaster.bundle import build as luabuild
from jqmaster.bundle.build import build, builtin
from lua_sources import run, write  # noqa: F401
from servers import RedisServer

ROOT = Path(__file__).resolve().parents[3]
Built = Callable[..., str]


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """Build the script ``op`` from sources; its source."""
    return lambda script, **modules: build(write(tmp_path, script, **modules))["op"].source


MODULE = """
local M = {}
local LIMIT = 7
local function double(n) return n * 2 end
function M.used(n) return double(n) + LIMIT end
function M.unused(n) return n end
M.UNUSED = "nothing"
return M
"""
USE = 'local m = require "jqlua.m"\nreturn m.used(tonumber(ARGV[1]))'


class TestShaking:
    def test_what_it_does_not_reach_is_dropped(self, built: Built) -> None:
        source = built(USE, m=MODULE)
        assert "return n * 2 end" in source and "(n) + 7 end" in source
        assert "(n) return n end" not in source and '"nothing"' not in source


class TestNames:
    def test_keys_fields_and_methods_of_the_same_name_stay(self, run: Any) -> None:
        module = """local M = {}
            local size = 3
            local function len(s) return #s end
            function M.f(t)
              local o = { size = size, len = len("ab"); [size] = 9 }
              return { o.size, t.size, ("abcd"):len(), len("a"), o.len, o[3] }
            end
            return M"""
        reply = run('local m = require "jqlua.m"\nreturn m.f({ size = 8 })', m=module)
        assert reply == [3, 8, 4, 1, 2, 9]


class TestConstants:
    def test_constants_stand_where_they_are_used(self, run: Any, built: Built) -> None:
        module = 'local M = {}\nM.DAY = 20 + 4\nM.TWO = M.DAY * 2\nM.LOW = -1\nM.S = "s"\nreturn M'
        script = 'local m = require "jqlua.m"\nreturn { m.TWO, m.LOW, m.S .. m.DAY, m.S:rep(2) }'
        assert run(script, m=module) == [48, -1, b"s24", b"ss"]
        assert "F_[" not in built(script, m=module)


class TestErrors:
    """What a module raises with check.refuse is the reply; other errors stay what they are."""

    MODULE = """local M = {}
        function M.fail(what)
          if what == "refusal" then
            local reply = redis.error_reply("INVALID x: wrong")
            reply.is_refusal = true
            error(reply, 0)
          elseif what == "redis" then
            redis.call("SET", KEYS[1], "text")
            redis.call("HGET", KEYS[1], "field")
          end
          return what.field.field
        end
        return M"""
    SCRIPT = 'local m = require "jqlua.m"\nlocal k = require "jqlua.base.keys"\nm.fail(ARGV[1])\nreturn k.NOTHING'

    @pytest.mark.parametrize("form", ["script", "function"])
    @pytest.mark.parametrize(
        ("what", "error"),
        [
            ("refusal", "INVALID x: wrong$"),
            ("redis", "^WRONGTYPE Operation against .* script: .*, on @user_"),
            ("lua", "^(ERR )?user_.*attempt to index field 'field'.* script: .*, on @user_"),
        ],
    )
    def test_an_error(self, tmp_path: Path, redis_server: RedisServer, form: str, what: str, error: str) -> None:
        script = "-- @flags write, function\n" + self.SCRIPT
        bundle = build(
            write(tmp_path, script, m=self.MODULE, **{"base/keys": "local M = {}\nM.NOTHING = {}\nreturn M"})
        )
        assert bundle.library
        with redis_server.client() as client, pytest.raises(redis.ResponseError, match=error):
            if form == "script":
                client.execute_command("EVAL", bundle["op"].source, 1, "{e}", what)
            else:
                client.execute_command("FUNCTION", "LOAD", "REPLACE", bundle.library.source)
                client.execute_command("FCALL", f"{bundle.library.name}_op", 1, "{e}", what)


def test_tables_of_the_library_stay_until_a_call_fails(tmp_path: Path, redis_server: RedisServer) -> None:
    module = """local keys = require "jqlua.base.keys"
        local M = {}
        local kept = KEPT
        local open = {}
        function M.add(what)
          kept[#kept + 1], open[#open + 1] = what, what
          return { #kept, #open, what.field }
        end
        return M"""
    script = '-- @flags write, function\nlocal m = require "jqlua.m"\nreturn m.add(ARGV[1] == "" and {} or nil)'
    keys = {"base/keys": "local M = {}\nreturn M"}
    library = build(write(tmp_path, script, m=module, **keys)).library
    assert library
    with redis_server.client() as client:
        client.execute_command("FUNCTION", "LOAD", "REPLACE", library.source)
        call = ("FCALL", f"{library.name}_op", 1, "{e}")
        assert [client.execute_command(*call, "") for _ in range(2)] == [[1, 1], [2, 1]]
        with pytest.raises(redis.ResponseError, match="attempt to index"):
            client.execute_command(*call, "fail")
        assert client.execute_command(*call, "") == [1, 1]


def test_values_and_functions_are_made_once_and_when_they_are_needed(run: Any) -> None:
    module = """local M = {}
        local START = tonumber(ARGV[1])
        local counts = { calls = 0 }
        local function count() counts.calls = counts.calls + 1 return counts.calls end
        local FIRST = count() * 10
        local NEXT = FIRST + START
        function M.plain(n) return count() + n end
        local function deep(n) return n < 1 and 0 or 1 + deep(n - 1) end
        function M.other(n) return deep(n) + NEXT + M.plain(0) end
        function M.rare() return START + counts.calls end
        return M"""
    script = """local m = require "jqlua.m"
        local function twice(n) return m.plain(n) + m.plain(n) end
        return { twice(1), ARGV[2] and m.other(3) or 0, ARGV[3] and m.rare() or 0, m.plain(0) }"""
    assert run(script, 5, m=module) == [5, 0, 0, 3]
    # The calls are counted 1 and 2, FIRST is 10 times the third, then 4, rare says so, and the last is 5.
    assert run(script, 5, 1, 1, m=module) == [5, 3 + 35 + 4, 9, 5]


class TestText:
    def test_comments_and_indentation_go_strings_stay(self, run: Any, built: Built) -> None:
        script = """local z --[[ long
            comment ]] local a = "-- no comment" -- [[ ]]
            local b = [[
 two -- lines]]  -- gone
            local c = 'it''s' -- gone
            return { a, b, c, "\\"--\\\\" }"""
        script = script.replace("'it''s'", "'it\\'s'")
        assert run(script) == [b"-- no comment", b" two -- lines", b"it's", b'"--\\']
        source = built(script)
        assert "gone" not in source and "long" not in source and "\n  " not in source

    def test_the_same_sources_give_the_same_bytes(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            write(tmp_path / name, USE, m=MODULE)
        windows = (tmp_path / "two" / "jqlua" / "m.lua").read_bytes().replace(b"\n", b"\r\n")
        (tmp_path / "two" / "jqlua" / "m.lua").write_bytes(windows)
        (tmp_path / "two" / "jqlua" / "other.lua").write_text("not even Lua")
        assert build(tmp_path / "one") == build(tmp_path / "two")

    def test_and_in_another_process_with_other_hashes(self, tmp_path: Path) -> None:
        manifests = []
        for seed in ("1", "2"):
            out = tmp_path / seed
            command = [sys.executable, "-m", "jqmaster.bundle", str(out)]
            path = str(Path(luabuild.__file__).parents[2])
            subprocess.run(command, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": path})
            manifests.append((out / "manifest.json").read_text())
        assert manifests[0] == manifests[1]

    def test_the_version_follows_the_sources(self, tmp_path: Path) -> None:
        one = luabuild.version_of(build(write(tmp_path, "return 1")))
        two = luabuild.version_of(build(write(tmp_path, "return 2")))
        assert one != two and one.startswith(luabuild.__version__ + "+")

    def test_the_clock_can_be_replaced(self, tmp_path: Path) -> None:
        server = "local M = {}\nfunction M.now() return 1 end\nreturn M"
        settable = server.replace("1", "2")
        script = 'local clock = require "jqlua.base.clock"\nreturn clock.now()'
        root = write(tmp_path, script, **{"base/clock": server, "base/clock_settable": settable})
        assert "function() return 1 end" in build(root)["op"].source
        assert "function() return 2 end" in build(root, clock="settable")["op"].source


class TestRealScripts:
    def test_every_script_of_the_repository_builds_and_loads(self, redis_server: RedisServer) -> None:
        assert builtin().keys() == {path.stem for path in (ROOT / "scripts").glob("*.lua")}
        for clock in ("server", "settable"):
            with redis_server.client() as client:
                for script in builtin(clock).values():  # type: ignore[arg-type]
                    assert client.script_load(script.source) in (script.sha, script.sha.encode())
