"""The conformance suite by way of a server: `POST /call/<operation>` takes and says what the scripts do."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgpack
import pytest
import redis

from http_support import MSGPACK, asgi
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.engine.waiting import Waiting
from jqmaster.manifest.contract import SERVER
from jqmaster.manifest.manifest import operations
from jqmaster.server.http.app import App
from jqmaster.server.keyring import Keyring
from jqmaster.server.master import Master
from servers import RedisServer

SUITE = Path(__file__).parents[2] / "protocol"
NAMESPACE = "{called}"


def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conformance_runner", SUITE / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUN = runner()
CASES = [
    pytest.param(case, id=f"{path.stem}: {case['case']}")
    for path in sorted(SUITE.glob("*.json"))
    for case in json.loads(path.read_text())["cases"]
    # A server sets up its namespace, and says itself who asks.
    if case.get("setup", True) and case["case"] != "who changes something is told by the trail"
]


class Called(RUN.Client):  # type: ignore[name-defined, misc]
    """Calls by way of a server, but for what only servers call, or say."""

    def __init__(self, url: str) -> None:
        super().__init__(url, NAMESPACE)
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.redis = self.run(self._connect(url))
        self.apps: dict[str, Any] = {}

    async def _connect(self, url: str) -> Any:
        return connect(url)

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def call(self, namespace: str, script: str, *arguments: str | bytes) -> Any:
        says_actor = any(b"actor" in one for one in arguments if isinstance(one, bytes))
        if operations()[script].roles == (SERVER,) or says_actor:
            return super().call(namespace, script, *arguments)
        try:
            return self.run(self._call(namespace, script, arguments))
        except redis.ResponseError as refusal:
            if "a key with the role server" not in str(refusal):
                raise
            return super().call(namespace, script, *arguments)

    async def _call(self, namespace: str, script: str, arguments: tuple[str | bytes, ...]) -> Any:
        if namespace not in self.apps:
            engine = Engine(self.redis, namespace)
            waiting, ended = Waiting(engine), Ended(engine)
            master = Master(engine, waiting, ended, Keyring(engine))
            self.apps = {namespace: App(master)}
        headers = {"content-type": MSGPACK, "accept": MSGPACK}
        body = msgpack.packb([one.encode() if isinstance(one, str) else one for one in arguments])
        answer = await asgi(self.apps[namespace], "POST", f"/call/{script}", headers, body)
        if answer.status != 200:
            raise redis.ResponseError(f"{answer.error['code']} {answer.error['message']}")
        return msgpack.unpackb(answer.raw, raw=True)


@pytest.fixture(scope="module")
def client() -> Iterator[Called]:
    async def prepare(url: str) -> None:
        async with connect(url) as client:
            await load(client, NAMESPACE)

    with RedisServer() as server:
        asyncio.run(prepare(server.url))
        client = Called(server.url)
        yield client
        client.run(client.redis.aclose())
        client.loop.call_soon_threadsafe(client.loop.stop)
        client.close()


@pytest.mark.parametrize("case", CASES)
def test_a_case(client: Called, case: dict[str, Any]) -> None:
    RUN.Case(client, case["steps"]).run()
