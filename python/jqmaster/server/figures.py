"""How a namespace stands, looked up once for all who ask: `GET /overview` and `GET /metrics`.

A look costs a bounded number of calls, whatever is stored, and rests in proportion to what it took, for ten seconds at
most: so what is told is no older while anybody asks, and nothing is looked up while nobody does. With very many queues
their counts are those of the last time round, of which each look does a part.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from redis.exceptions import RedisError

from jqmaster.connection.together import Shared
from jqmaster.engine import alerts
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document, Page
from jqmaster.errors import Unavailable, from_redis

STATES = ("queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled", "skipped")
OPEN = STATES[:5]
MOST_QUEUES = 100  # that are told one by one: those with the most jobs

_PAGE = 200
_PAGES = 5  # of queues, in one look
_MOST_LISTED = 200  # constraints, schedules
_MOST_CALLS = 5  # for each of these
_MOST_WORKERS = 1000
_MOST_RUNNING = 1000
_LEAST_AGE_S = 2.0
_MOST_AGE_S = 10.0
_REST = 50  # times as long as a look took
_MOST_LOOK_S = 5.0  # half of what Prometheus waits for a scrape
_MOST_REPLY_S = 30.0  # as calls have


@dataclass
class Look:
    """What a look found. `queues`: those with the most jobs, in order of name."""

    at: float = 0.0  # by the monotonic clock
    now_ms: int = 0
    alerts: list[Document] = field(default_factory=list)
    queues: list[Document] = field(default_factory=list)
    sums: Counter[str] = field(default_factory=Counter)  # of all queues, by state; and how many are paused
    count: int | None = None  # of queues; None before all were seen once
    round_s: float = 0.0  # how old counts and sums are
    constraints: list[Document] = field(default_factory=list)
    schedules: list[Document] = field(default_factory=list)
    workers: list[Document] = field(default_factory=list)
    running: list[Document] = field(default_factory=list)  # attempts, a thousand at most

    @property
    def age_s(self) -> float:
        return time.monotonic() - self.at


class _Round:
    """One time through all queues."""

    def __init__(self, most: int, favourites: Sequence[str] = ()) -> None:
        self.sums: Counter[str] = Counter()
        self.count = 0
        self.cursor = ""
        self.began = time.monotonic()
        self._most = most
        self._favourites = frozenset(favourites)
        self._best: list[Document] = []

    def take(self, page: Page) -> None:
        self.count += len(page.documents)
        self.cursor = page.cursor
        for queue in page.documents:
            self.sums.update({name: int(queue[name]) for name in (*STATES, "paused")})
        self._best = heapq.nlargest(self._most, [*self._best, *page.documents], key=self._score)

    def best(self) -> list[Document]:
        return sorted(self._best, key=itemgetter("name"))

    def _score(self, queue: Document) -> tuple[int, str]:
        jobs = sum(queue[state] for state in STATES)
        # Who is told stays so until another has clearly more: series that come and go are of no use.
        return jobs * 2 + 1 if queue["name"] in self._favourites else jobs, queue["name"]


class Figures:
    """Looks at a namespace. Nothing to start; what is under way ends by itself within seconds."""

    def __init__(self, engine: Engine, most_queues: int = MOST_QUEUES) -> None:
        self._engine = engine
        self._most = most_queues
        self._round = _Round(most_queues)
        self._done: _Round | None = None
        self._latest: Look | None = None
        self._due = 0.0
        self._looking = Shared(self._look)

    async def look(self) -> Look:
        """Ten seconds old at most. Raises what the engine does, and Unavailable when it takes longer than some seconds;
        then the look goes on."""
        if self._latest is None or time.monotonic() >= self._due:
            return await self._looking.get(_MOST_LOOK_S)
        return self._latest

    async def _look(self) -> Look:
        began = time.monotonic()
        look = Look(at=began, now_ms=await now_ms(self._engine))
        look.alerts = await alerts.every(self._engine.alerts)
        look.queues = await self._queues()
        seen = self._done or self._round
        look.sums, look.round_s = seen.sums, time.monotonic() - seen.began
        look.count = self._done.count if self._done else None
        look.constraints = await self._list(self._engine.constraints, busiest=0)
        look.schedules = await self._list(self._engine.schedules)
        workers = await self._engine.workers(count=_MOST_WORKERS)
        look.workers = [worker for worker in workers.documents if worker["state"] != "gone"]
        running = await self._engine.jobs({"status": "running"}, brief=True, count=_MOST_RUNNING)
        look.running = running.documents
        ended = time.monotonic()
        self._due = began + max(_LEAST_AGE_S, min((ended - began) * _REST, _MOST_AGE_S))
        self._latest = look
        return look

    async def _queues(self) -> list[Document]:
        """Go on through the queues; the documents of those that are told, as they are now."""
        is_whole = not self._round.cursor
        if is_whole:
            self._round.began = time.monotonic()
        for _ in range(_PAGES):
            self._round.take(await self._engine.queues(cursor=self._round.cursor or None, count=_PAGE))
            if not self._round.cursor:
                best = self._round.best()
                self._done = self._round
                self._round = _Round(self._most, [queue["name"] for queue in best])
                if is_whole:
                    return best
                break
        best = (self._done or self._round).best()
        return (await self._engine.queues([queue["name"] for queue in best])).documents if best else []

    async def _list(self, ask: Callable[..., Awaitable[Page]], **options: Any) -> list[Document]:
        documents: list[Document] = []
        cursor: str | None = None
        for _ in range(_MOST_CALLS):
            page = await ask(cursor=cursor, count=_MOST_LISTED, **options)
            documents, cursor = documents + page.documents, page.cursor
            if cursor == "" or len(documents) >= _MOST_LISTED:
                break
        return documents


async def now_ms(engine: Engine) -> int:
    """By the clock of Redis. Raises Unavailable."""
    try:
        async with asyncio.timeout(_MOST_REPLY_S):
            seconds, micros = await engine.redis.time()
    except TimeoutError as late:
        raise Unavailable(f"Redis did not answer within {_MOST_REPLY_S:g} s", late) from late
    except RedisError as problem:
        raise from_redis(problem) from problem
    return int(seconds) * 1000 + int(micros) // 1000
