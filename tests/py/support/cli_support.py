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
from jqmaster.connection import plainly
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
        return self.call(*arguments, *self.where, stdin=stdin)

    def ok(self, *arguments: str, stdin: str = "") -> Said:
        said = self.run(*arguments, stdin=stdin)
        assert said.code == 0, said
        return said

    def engine(self, call: Callable[[Operations], Coroutine[Any, Any, Any]]) -> Any:
        """What one of the engine's methods gives."""

        async def asked() -> Any:
            return await call(await self.jq.aengine())

        return plainly.run(asked())


def work(cli: Cli, queue: str, worker: str = "w", *, fails: str | None = None, group: str = "Boom") -> str:
    """One attempt at the next job of a queue; its id."""
    [job] = cli.engine(lambda it: it.pick(worker, queue)).jobs
    outcome, blob = {"id": job.id, "token": job.token, "type": "success"}, b"\x81\xa3sum\x2a"
    if fails is not None:
        outcome, blob = outcome | {"type": "failure", "message": fails, "group": group}, b"\xc0"
    cli.engine(lambda it: it.finish("w", [(outcome, blob)]))
    return str(job.id)


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


@pytest.fixture
def straight(call: Callable[..., Said], redis_url: str, namespace: str) -> Iterator[Cli]:
    """A command line on a namespace of its own, straight on Redis."""
    with live_server(redis_url, namespace) as live:
        yield Cli(["--redis", redis_url, "--namespace", namespace], live.url, call, JQ(redis_url, namespace=namespace))


@pytest.fixture(params=["redis", "master"])
def cli_(request: pytest.FixtureRequest, straight: Cli) -> Cli:
    """The same, and by way of a master."""
    if request.param == "master":
        straight.where = ["--url", straight.url]
    return straight
