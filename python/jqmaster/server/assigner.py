"""Where dispatch gets its jobs: `assign` starts them on registered workers, and counts each in the same step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import redis.asyncio as redis_asyncio

from jqmaster.connection.wake import WINDOW_MS, Channel
from jqmaster.engine.calling import new_request
from jqmaster.engine.engine import Engine, pack
from jqmaster.server import delivery
from jqmaster.server.delivery import PushJob

CHANNEL = "push"
# The next due moment may be known to one master alone. If that one is killed, another looks after this time.
LOOK_EVERY_S = 10.0


class Assigner:
    """What dispatch needs of a namespace."""

    def __init__(self, engine: Engine, redis: redis_asyncio.Redis, master: str, secrets: Sequence[str]) -> None:
        self.channel = Channel(redis, f"{engine.namespace}:wake:{CHANNEL}")
        self._engine = engine
        self._master = master
        self._secrets = secrets
        self._request = new_request()

    async def take(self, limit: int, without: Callable[[], Sequence[str]]) -> tuple[int, list[PushJob]]:
        """Jobs that were started on registered workers, and when there are more, as `assign` tells. `without`: whom to
        pass over, asked for with each look."""
        wait = {"on": CHANNEL, "ms": WINDOW_MS}
        spec = {"limit": limit, "master": self._master, "wait": wait, "request": self._request}
        if out := without():
            spec["without"] = out
        next_ms, *parts = await self._engine.raw("assign", pack(spec))
        self._request = new_request()  # only now: what an answer brought that was lost comes again
        return next_ms, delivery.assigned(parts, self._secrets)

    async def sleep(self, next_ms: int) -> None:
        """Until there may be jobs."""
        self.channel.look_in(next_ms)
        await self.channel.sleep(LOOK_EVERY_S)

    def poke(self) -> None:
        """Look, and do not sleep."""
        self.channel.wake_all()

    def drain(self) -> None:
        """Have others look from now on."""
        self.channel.hand_over()

    async def stop(self) -> None:
        """`drain`, and close what waiting needs."""
        await self.channel.stop()
