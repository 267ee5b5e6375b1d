"""What `GET /metrics` tells of a namespace. Each look costs a bounded number of calls, whatever is stored.

Queues are shown one by one up to a number, those with the most jobs; the others are summed up. To know which
have the most, a look goes through some hundred queues in order of name, and the next look goes on from there:
with more queues than that, which ones are shown, and the sum of the rest, are of the last time round.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from redis.exceptions import RedisError

from jqmaster.connection.together import Shared
from jqmaster.doctor.doctor import examine
from jqmaster.doctor.facts import Source
from jqmaster.doctor.finding import Finding
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document, Page
from jqmaster.errors import JQError, Unavailable, from_redis
from jqmaster.server.tally import Rest, Tally

log = logging.getLogger("jqmaster.metrics")

MOST_QUEUES = 100
STATES = ("queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled", "skipped")
WORKER_STATES = ("ready", "full", "busy", "unreachable", "pulling", "quiet")
OTHERS = "*"  # no queue has this name

_PAGE, _PAGES = 100, 5  # of queues, in one look
_MOST_CONSTRAINTS = 200
_MOST_SCHEDULES = 200
_MOST_WORKERS = 1000
_AT_ONCE = 10  # calls
_MOST_LOOK_S = 5.0  # half of what Prometheus waits for a scrape
_MOST_REPLY_S = 30.0  # as calls have
_HOUR_MS = 3_600_000
_DOCTOR_EVERY_S = 60.0
_DOCTOR_QUEUES = 1000


@dataclass
class Look:
    """What a look found. `queues`: those shown, with the sum of the rest as the last, if there are any."""

    queues: list[Document] = field(default_factory=list)
    tallies: dict[str, Tally | Rest] = field(default_factory=dict)
    constraints: list[Document] = field(default_factory=list)
    schedules: list[Document] = field(default_factory=list)
    workers: list[Document] = field(default_factory=list)
    commands: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    known_queues: int = 0
    round_s: float = 0.0  # how old the choice of queues is


class _Round:
    """One time through all queues."""

    def __init__(self, most: int, favourites: Sequence[str]) -> None:
        self.sums = dict.fromkeys(STATES, 0)
        self.count = 0
        self._most = most
        self._favourites = frozenset(favourites)
        self._best: list[Document] = []

    def take(self, documents: Sequence[Document]) -> None:
        self.count += len(documents)
        for state in STATES:
            self.sums[state] += sum(document[state] for document in documents)
        self._best = heapq.nlargest(self._most, [*self._best, *documents], key=self._score)

    def best(self) -> list[Document]:
        return sorted(self._best, key=itemgetter("name"))

    def rest(self) -> dict[str, int]:
        """By state, the jobs of those that are not among the best."""
        return {state: self.sums[state] - sum(queue[state] for queue in self._best) for state in STATES}

    def _score(self, document: Document) -> tuple[int, str]:
        jobs = sum(document[state] for state in STATES)
        # Who is shown stays so until another has clearly more: series that come and go are of no use.
        return jobs * 2 + 1 if document["name"] in self._favourites else jobs, document["name"]


class Figures:
    """Looks at a namespace; remembers what counters need."""

    def __init__(self, engine: Engine, most_queues: int = MOST_QUEUES) -> None:
        self._engine = engine
        self._most = most_queues
        self._round = _Round(most_queues, ())
        self._cursor = ""
        self._chosen: list[str] = []
        self._rest: Document | None = None
        self._known = 0
        self._round_ended = time.monotonic()
        self._tallies: dict[str, Tally] = {}
        self._all = Tally()
        self._others = Rest()
        self._from_ms: int | None = None
        self._findings: list[Finding] = []
        self._findings_at = -_DOCTOR_EVERY_S
        self._looking = Shared(self._look)

    async def look(self, most_s: float = _MOST_LOOK_S) -> Look:
        """Everything. Raises what the engine does, and Unavailable when it takes longer. Then the look goes
        on: one that is broken off would leave counters half way."""
        return await self._looking.get(most_s)

    async def _look(self) -> Look:
        look = Look()
        was_chosen, had_rest = frozenset(self._chosen), self._rest is not None
        look.queues = await self._queues()
        look.known_queues, look.round_s = self._known, time.monotonic() - self._round_ended
        await self._count(was_chosen, had_rest)
        look.tallies = {name: self._tallies[name] for name in self._chosen}
        if self._rest is not None:
            look.queues.append(self._rest)
            look.tallies[OTHERS] = self._others
        look.constraints = await self._first(self._engine.constraints, _MOST_CONSTRAINTS)
        look.schedules = await self._first(self._engine.schedules, _MOST_SCHEDULES)
        look.workers = await self._first(self._engine.workers, _MOST_WORKERS)
        look.commands = await self._commands()
        look.findings = await self._examined()
        return look

    # -- queues -----------------------------------------------------------------------------------

    async def _queues(self) -> list[Document]:
        """Go on through the queues; the documents of those to be shown, as they are now."""
        is_whole = self._cursor == ""
        for _ in range(_PAGES):
            page = await self._engine.queues(cursor=self._cursor or None, count=_PAGE)
            self._round.take(page.documents)
            self._cursor = page.cursor
            if page.cursor == "":
                documents = self._end_round()
                if is_whole:
                    return documents
                break
        if not self._chosen and self._known == 0:
            # The first time round has not ended yet.
            self._chosen = [str(queue["name"]) for queue in self._round.best()]
        if not self._chosen:
            return []
        return (await self._engine.queues(self._chosen)).documents

    def _end_round(self) -> list[Document]:
        done = self._round
        documents = done.best()
        self._chosen = [str(document["name"]) for document in documents]
        self._known = done.count
        self._rest = None
        if done.count > len(documents):
            self._rest = {"name": OTHERS, "paused": False, "max_waiting": 0, **done.rest()}
        self._round = _Round(self._most, self._chosen)
        self._round_ended = time.monotonic()
        return documents

    async def _count(self, was_chosen: frozenset[str], had_rest: bool) -> None:
        """Bring the counters up to date."""
        # A queue that was not shown before was among the others; where there were none, it is new.
        others = had_rest or self._rest is not None
        now_ms = await self._now_ms()
        is_first = self._from_ms is None
        latest_ms = now_ms // _HOUR_MS * _HOUR_MS - _HOUR_MS
        # What is before was looked at in full already, also when the clock went back meanwhile.
        from_ms = self._from_ms = latest_ms if self._from_ms is None else self._from_ms
        to_ms = max(now_ms, from_ms) + 2 * _HOUR_MS
        gains = []
        for start in range(0, len(self._chosen), _AT_ONCE):
            names = self._chosen[start : start + _AT_ONCE]
            asked = [self._engine.stats("hour", from_ms=from_ms, to_ms=to_ms, queue=name) for name in names]
            for name, documents in zip(names, await asyncio.gather(*asked), strict=True):
                tally = self._tallies.setdefault(name, Tally())
                counts = not is_first and (name in was_chosen or not others)
                gains.append(tally.take(documents, counts=counts))
        hours = await self._engine.stats("hour", from_ms=from_ms, to_ms=to_ms)
        everything = self._all.take(hours, counts=not is_first)
        if self._rest is not None:
            self._others.take(everything, gains)
        self._from_ms = max(from_ms, latest_ms)
        for name in [name for name in self._tallies if name not in self._chosen]:
            # Not shown any more, or forgotten: then nothing of what it had is there when it comes again.
            self._tallies[name].take([])
            if len(self._tallies) > 4 * self._most:
                del self._tallies[name]

    # -- the rest ---------------------------------------------------------------------------------

    async def _first(self, ask: Callable[..., Awaitable[Page]], most: int) -> list[Document]:
        documents: list[Document] = []
        cursor: str | None = None
        while cursor != "" and len(documents) < most:
            page = await ask(cursor=cursor, count=_PAGE)
            documents, cursor = documents + page.documents, page.cursor
        return documents

    async def _now_ms(self) -> int:
        return await now_ms(self._engine)

    async def _commands(self) -> dict[str, dict[str, Any]]:
        """What Redis says of commands; nothing where this user may not ask."""
        try:
            async with asyncio.timeout(_MOST_REPLY_S):
                stats = await self._engine.redis.info("commandstats")
        except Exception:
            return {}
        return {
            name.removeprefix("cmdstat_"): values
            for name, values in stats.items()
            if name.startswith("cmdstat_") and isinstance(values, dict)
        }

    async def _examined(self) -> list[Finding]:
        """The doctor's findings, at most a minute old; none where there are very many queues."""
        if self._known > _DOCTOR_QUEUES or (self._known == 0 and self._cursor != ""):
            return []
        if time.monotonic() - self._findings_at >= _DOCTOR_EVERY_S:
            self._findings_at = time.monotonic()
            try:
                self._findings = await examine(Source(self._engine))
            except JQError as error:
                # All else can be told without it.
                log.warning("the doctor could not examine the namespace: %s", error)
                self._findings = []
        return self._findings


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
