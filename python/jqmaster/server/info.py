"""Where a master stands: its namespace, its Redis, both versions, and what its operators call all that."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from redis.exceptions import RedisError

from jqmaster import __version__
from jqmaster.connection.url import parse
from jqmaster.engine.engine import Engine

Color = Literal["grey", "blue", "green", "amber", "red", "purple"]
_PATIENCE_S = 1.0


@dataclass
class ServerInfo:
    """`environment` and its color are shown in the web UI, so that nobody takes one system for another."""

    redis: str = ""
    environment: str = ""
    color: Color = "grey"

    async def document(self, engine: Engine) -> dict[str, Any]:
        """As `GET /session` has it. `redis_version` is None while Redis does not answer."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                info = await engine.redis.info("server")
                version = str(info.get("valkey_version") or info["redis_version"])
        except (RedisError, OSError, TimeoutError):
            version = None
        return {
            "version": __version__, "namespace": engine.namespace, "redis": self.redis, "redis_version": version,
            "environment": self.environment, "color": self.color,
        }  # fmt: skip


def hosts_of(url: str) -> str:
    """Where a Redis is, without users, passwords and options: `10.0.0.3:6379`, `cluster a:6379`."""
    target = parse(url)
    if target.hosts:
        service = f"{target.service} at " if target.service else ""
        return f"{target.kind} {service}{', '.join(f'{host}:{port}' for host, port in target.hosts)}"
    scheme, _, rest = target.url.partition("://")
    place = rest.partition("?")[0].rpartition("@")[2].rstrip("/")
    return f"unix:{place}" if scheme == "unix" else place
