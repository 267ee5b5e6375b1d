"""A server in a thread of its own, with a loop of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jqmaster.server.server import ServeOptions, Server


@dataclass
class Live:
    server: Server
    loop: asyncio.AbstractEventLoop

    def __post_init__(self) -> None:
        self.run(self.server.__aenter__())
        self.url, self.master = self.server.url, self.server.master
        self.port = int(self.url.rpartition(":")[2])

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
    try:
        live = Live(Server(ServeOptions(**options)), loop)
        yield live
        live.run(live.server.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
