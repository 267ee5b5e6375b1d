"""The fuzzer for some seconds, with a seed that stays; and that it sees what it is to see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzz_http import HttpFuzzer, fuzzed_master
from fuzz_scripts import Fault, ScriptFuzzer
from refusal_data import debug_server
from servers import RedisServer


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with debug_server() as server:
        yield server


@pytest.mark.parametrize("form", ["functions", "scripts"])
def test_scripts(server: RedisServer, form: str) -> None:
    fuzzer = ScriptFuzzer(server, form, "test")
    fuzzer.round(0)
    report = fuzzer.report
    assert report.inputs == 2000 and 500 < report.refused < 1750
    assert {"INVALID", "NOTFOUND", "CONFLICT"} <= set(report.by)


def test_a_master(server: RedisServer) -> None:
    with fuzzed_master(server) as master:
        fuzzer = HttpFuzzer(server, master, "test")
        fuzzer.round(0)
        fuzzer.close()
    assert fuzzer.report.inputs == 500 and fuzzer.report.by["200"] > 60 and fuzzer.report.by["400"] > 50


WRONG = {
    "has changed": "redis.call('SET', KEYS[2] .. 'x', '1') return redis.error_reply('INVALID x: y')",
    "attempt to": "local t = nil return t.x",
    "says 'OTHER": "return redis.error_reply('OTHER x: y')",
}


@pytest.mark.parametrize("says", WRONG)
def test_a_wrong_script_is_found(server: RedisServer, says: str) -> None:
    fuzzer = ScriptFuzzer(server, "scripts", "test")
    fuzzer.driver.called["tick"] = "EVALSHA", fuzzer.redis.send("SCRIPT", "LOAD", WRONG[says])
    with pytest.raises(Fault, match=says):
        fuzzer.round(0)


def test_what_audit_finds_is_found(server: RedisServer) -> None:
    fuzzer = ScriptFuzzer(server, "functions", "test")
    script = "redis.call('DEL', KEYS[1] .. ':queue-names') return {0, 0}"
    fuzzer.driver.called["tick"] = "EVALSHA", fuzzer.redis.send("SCRIPT", "LOAD", script)
    with pytest.raises(Fault, match="audit"):
        fuzzer.round(0)
