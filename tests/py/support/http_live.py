"""A server in a thread of its own, with a loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jqmaster.server.master import Master
from jqmaster.server.server import ServeOptions, Server


@dataclass
class Live:
    server: Server
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def master(self) -> Master:
        return self.server.master

    def run(self, work: Any) -> Any:
        """Run a coroutine in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)


@contextlib.contextmanager
def live_server(redis_url: str, namespace: str, port: int = 0, **options: Any) -> Iterator[Live]:
    """`options`: of ServeOptions. It may be asked by any name, unless they say otherwise."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    options = {"redis_url": redis_url, "namespace": namespace, "port": port, "allowed_hosts": ["*"], **options}
    live = Live(Server(ServeOptions(**options)), loop)
    try:
        live.run(live.server.start())
        yield live
        live.run(live.server.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
