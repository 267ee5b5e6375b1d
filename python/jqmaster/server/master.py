"""What the HTTP layer needs of the rest of a JQ master, and the one object that holds it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Literal

from redis.exceptions import RedisError

from jqmaster import __version__
from jqmaster.connection.together import Together
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import Waiting
from jqmaster.server.dispatch import Dispatch
from jqmaster.server.keyring import Keyring
from jqmaster.server.meters import Meters
from jqmaster.server.session import IDLE_S, NO_PROXIES, Proxies

Color = Literal["grey", "blue", "green", "amber", "red", "purple"]
_VERSION_S = 1.0  # how long Redis is asked for its


@dataclass
class Master:
    """The parts of one JQ master. Whoever builds it starts and stops the parts.

    While `draining` is set the master takes no new picks, `/health` answers 503 so that a load balancer looks
    elsewhere, and open long polls are answered at once. It never goes back.
    """

    engine: Engine
    waiting: Waiting
    ended: Ended
    dispatch: Dispatch
    keyring: Keyring | None = None
    """Without one everybody may do everything."""
    proxies: Proxies = NO_PROXIES
    session_idle_s: float = IDLE_S
    redis: str = ""
    """Where it is, without passwords."""
    environment: str = ""
    """Shown in the web UI with its color, so that nobody takes one system for another."""
    color: Color = "grey"
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    meters: Meters = field(default_factory=Meters)
    metrics_queues: int = 100
    enqueuing: Together = field(init=False)

    def __post_init__(self) -> None:
        self.enqueuing = Together(self.engine, "enqueue")
        self.engine.observe = self.meters.call

    async def about(self) -> dict[str, Any]:
        """As `GET /session` has it. `redis_version` is None while Redis does not answer."""
        try:
            async with asyncio.timeout(_VERSION_S):
                info = await self.engine.redis.info("server")
                version = str(info.get("valkey_version") or info["redis_version"])
        except (RedisError, OSError, TimeoutError):
            version = None
        return {
            "version": __version__, "namespace": self.engine.namespace, "redis": self.redis, "redis_version": version,
            "environment": self.environment, "color": self.color,
        }  # fmt: skip
