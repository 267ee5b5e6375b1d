"""The command line as its user calls it, in this process, straight on Redis or by way of a master."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from http_live import live_server
from jqmaster import JQ, cli
from jqmaster.engine.engine import Operations


@dataclass
class Said:
    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def document(self) -> Any:
        [only] = self.documents
        return only


@dataclass
class Cli:
    """`run` calls a command where `where` says; `jq` and `engine` set things up beside it."""

    where: list[str]
    url: str
    call: Callable[..., Said]
    jq: JQ

    def run(self, *arguments: str, stdin: str = "") -> Said:
        """The options that say where to ask come behind the first word, so that verbs may follow."""
        first, *rest = arguments
        return self.call(first, *self.where, *rest, stdin=stdin)

    def ok(self, *arguments: str, stdin: str = "") -> Said:
        said = self.run(*arguments, stdin=stdin)
        assert said.code == 0, said
        return said

    def engine(self, call: Callable[[Operations], Coroutine[Any, Any, Any]]) -> Any:
        """What one of the engine's methods gives."""

        async def asked() -> Any:
            return await call(await self.jq.aengine())

        return self.jq.link.run(asked())


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """`jqmaster …`, without the environment of whoever runs the tests."""
    import os

    for name in [name for name in os.environ if name.startswith("JQ_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")

    def called(*arguments: str, stdin: str = "") -> Said:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capfd.readouterr()
        try:
            code = cli.main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Said(code, out, err)

    return called


@pytest.fixture(params=["redis", "master"])
def cli_(request: pytest.FixtureRequest, call: Callable[..., Said], redis_url: str, namespace: str) -> Iterator[Cli]:
    """A command line on a namespace of its own, both ways."""
    with live_server(redis_url, namespace) as live:
        straight = ["--redis", redis_url, "--namespace", namespace]
        yield Cli(
            straight if request.param == "redis" else ["--url", live.url],
            live.url,
            call,
            JQ(redis_url, namespace=namespace),
        )


@pytest.fixture
def straight(call: Callable[..., Said], redis_url: str, namespace: str) -> Iterator[Cli]:
    """Straight on Redis only."""
    with live_server(redis_url, namespace) as live:
        yield Cli(["--redis", redis_url, "--namespace", namespace], live.url, call, JQ(redis_url, namespace=namespace))
