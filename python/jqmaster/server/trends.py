"""What the web UI draws over time, looked up once for all who look at the same range."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

from jqmaster.connection.together import Shared
from jqmaster.engine.calling import pack
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.engine.trends import level_of

_MOST_S = 10.0
_REUSED_S = 5.0
_REST = 200  # times as long as it took
_MOST_REST_S = 120.0
_MOST_RANGES = 50
_MOST_RUNNING = 1000
_PAGES = 5
_MOST_QUEUES = 200
OPEN = ("queued", "scheduled", "blocked", "running", "retrying")


class _TrendsLook:
    """One question, and its latest answer."""

    def __init__(self, ask: Any) -> None:
        self._ask = ask
        self._shared: Shared[bytes] = Shared(self._look)
        self._packed = b""
        self._until = 0.0

    async def get(self) -> bytes:
        if self._packed and time.monotonic() < self._until:
            return self._packed
        return await self._shared.get(_MOST_S)

    async def _look(self) -> bytes:
        began = time.monotonic()
        self._packed = pack(await self._ask())
        ended = time.monotonic()
        self._until = ended + max(_REUSED_S, min((ended - began) * _REST, _MOST_REST_S))
        return self._packed


class Trends:
    """Answers about ranges of time. Nothing to start; what is under way ends by itself within seconds."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._looks: OrderedDict[tuple[Any, ...], _TrendsLook] = OrderedDict()

    async def trends(self, split: Any, from_ms: int, to_ms: int | None, top: int) -> bytes:
        """As `Engine.trends`, packed, with ``running``: how many attempts ran at each begin, and ``running_is_exact``;
        ``open``: how many jobs had not ended then, None with more queues than are looked at; and both ``now``. Raises
        what the engine does, and Unavailable."""
        step_ms = level_of(from_ms, int(time.time() * 1000))[1]
        key = split, from_ms // step_ms, to_ms and to_ms // step_ms, top, step_ms

        async def ask() -> Document:
            started, is_whole = await self._running()
            open_now = await self._open()
            reply = await self._engine.trends(split, from_ms=from_ms, to_ms=to_ms, top=top)
            open_then = None if open_now is None else [max(0, open_now - more) for more in reply["grown"]]
            running = [
                ran_on + sum(started_ms < begin for started_ms in started)
                for begin, ran_on in zip(reply["begins"], reply["ran_on"], strict=True)
            ]
            now = {"running": len(started), "open": open_now}
            return {**reply, "running": running, "running_is_exact": is_whole, "open": open_then, "now": now}

        return await self._ask(key, ask)

    async def changes(self, since_ms: int, span_s: float, top: int) -> bytes:
        """As `Engine.changes`, packed."""
        return await self._ask(
            ("changes", since_ms, span_s, top), lambda: self._engine.changes(since_ms, span_s=span_s, top=top)
        )

    async def _ask(self, key: tuple[Any, ...], ask: Any) -> bytes:
        look = self._looks.pop(key, None) or _TrendsLook(ask)
        self._looks[key] = look
        while len(self._looks) > _MOST_RANGES:
            self._looks.popitem(last=False)
        return await look.get()

    async def _open(self) -> int | None:
        page = await self._engine.queues(count=_MOST_QUEUES)
        if page.cursor:
            return None
        return sum(int(queue[state]) for queue in page.documents for state in OPEN)

    async def _running(self) -> tuple[list[int], bool]:
        """When the attempts that run began, and whether these are all."""
        started: list[int] = []
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._engine.jobs({"status": "running"}, brief=True, cursor=cursor, count=_MOST_RUNNING)
            started += [job["started_ms"] for job in page.documents if job.get("started_ms")]
            cursor = page.cursor
            if not cursor or len(started) >= _MOST_RUNNING:
                break
        return started, not cursor
