"""Every name that the engine takes can stand in a path, with clients that take `.` and `..` for steps within it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import requests

from jqmaster import JQ
from jqmaster.server.http.routes import name_of
from processes import MasterProcess
from servers import RedisServer

NAMES = (".", "..", "~.", "~~..", "~", "~a", "...", "a/b", "%2E", "ü %?#")


@pytest.fixture(scope="module")
def url(redis_url: str) -> Iterator[str]:
    with MasterProcess("--redis", redis_url, "--namespace", "{names}", "--environment", "staging",
                       "--environment-color", "amber") as process:  # fmt: skip
        yield process.url


def segment(name: str) -> str:
    """A name as it stands in a path: `a/b` is `a%2Fb`, `..` is `~..`, `~.` is `~~.`."""
    return quote(f"~{name}" if re.fullmatch(r"~*\.\.?", name) else name, safe="")


def test_segments_are_told_apart() -> None:
    assert [segment(name) for name in (".", "..", "~.", "a/b", "...", "~a")] == [
        "~.", "~..", "~~.", "a%2Fb", "...", "~a",
    ]  # fmt: skip
    assert all(name_of(segment(name)) == name for name in ("..", "~.", "~~..", "~", "..."))


@pytest.mark.parametrize("name", NAMES)
def test_whatever_has_a_name_is_found_by_it(url: str, name: str) -> None:
    jq, at = JQ(url), segment(name)
    jq.operations.constrain(name, {"name": name}, concurrency=1)
    with requests.Session() as http:
        http.headers["accept"] = "application/json"

        def ask(method: str, path: str, body: object = None) -> Any:
            answer = http.request(method, f"{url}{path}", json=body, timeout=60)
            assert answer.ok, (path, answer.text)
            return answer.json() if answer.content else None

        ask("POST", "/job", {"name": name, "queue": name, "tags": [name]})
        ask("POST", f"/schedule/{at}", {"every": 3600, "job": {"name": name}, "argument": False})
        [schedule] = jq.operations.schedules(ids=[name]).documents
        assert (schedule["id"], schedule["argument"]) == (name, False)
        assert ask("POST", f"/queue/{at}", {"known": True, "paused": True})["name"] == name
        assert list(jq.each("usage", name)) == ask("GET", f"/constraint/{at}/usage")["keys"]


def test_the_session_tells_of_what_master_it_is(url: str, redis_server: RedisServer) -> None:
    told = requests.get(f"{url}/session", headers={"accept": "application/json"}, timeout=60).json()["master"]
    assert (told["namespace"], told["environment"], told["color"]) == ("{names}", "staging", "amber")
    assert told["redis"] == redis_server.url
    assert told["version"]
