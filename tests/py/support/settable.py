"""Namespaces set up in little time, and engines whose clock stands still unless the test moves it."""

from __future__ import annotations

from redis.asyncio import Redis

from jqmaster.bundle.build import Clock, builtin
from jqmaster.engine.engine import Engine
from jqmaster.engine.scripts import load


async def set_up(redis: Redis, namespace: str, clock: Clock = "server") -> None:
    """As `load` does, which costs more than most tests: the manifest is copied from a namespace that has it."""
    scripts, template = builtin(clock), f"{{with-{clock}}}"
    if not await redis.copy(f"{template}:manifest", f"{namespace}:manifest"):
        await load(redis, template, scripts)
        await redis.copy(f"{template}:manifest", f"{namespace}:manifest")
    await redis.execute_command("EVAL", scripts["setup"].source, 2, namespace, f"{namespace}:meta")


class SettableEngine(Engine):
    """An engine whose scripts read the time that ``set_clock`` and ``advance`` set."""

    now_ms = 1_700_000_000_000

    async def set_clock(self, now_ms: int) -> None:
        self.now_ms = now_ms
        await self.redis.set(f"{self.namespace}:clock", now_ms)

    async def advance(self, seconds: float) -> None:
        await self.set_clock(self.now_ms + round(seconds * 1000))
