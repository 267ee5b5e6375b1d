"""The API under a real Hypercorn, on a private port, in a thread with a loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import hypercorn.asyncio

from http_support import mastering
from jqmaster.engine.engine import Engine, connect
from jqmaster.server.bulk import Bulks
from jqmaster.server.http import http1
from jqmaster.server.http.app import App
from jqmaster.server.master import Master
from settable import set_up


@dataclass
class Live:
    port: int
    master: Master
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, work: Any) -> Any:
        """Run a coroutine in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)


@contextlib.contextmanager
def live_server(
    redis_url: str, namespace: str, listener: socket.socket | None = None, **options: Any
) -> Iterator[Live]:
    """On a port of its own, or where `listener` listens."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    ready = threading.Event()
    started: list[Live] = []
    stop = asyncio.Event()

    async def main() -> None:
        client = connect(redis_url)
        await set_up(client, namespace)
        engine = Engine(client, namespace)
        bulks = Bulks(engine, "live")
        async with mastering(engine, bulks=bulks) as master:
            bulks.start()
            config = http1.config(listener.detach())
            config.graceful_timeout = 1
            started.append(Live(port, master, asyncio.get_running_loop()))
            app: Any = App(master, **options)
            ready.set()
            await hypercorn.asyncio.serve(app, config, shutdown_trigger=stop.wait)
            await bulks.stop()
        await client.aclose()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        assert ready.wait(60)
        yield started[0]
    finally:
        started[0].loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        assert not thread.is_alive()
