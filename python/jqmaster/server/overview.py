"""What operators see at a glance (`GET /overview`), looked up once for all who look, while somebody does.

No look costs more with more jobs stored. With many queues it costs no more either: those with the most jobs
are looked at each time, the others some hundred at a time, in turn. Each part rests for hundreds of times as
long as it took, so that all of them together keep below a hundredth of Redis whatever a namespace is like.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable

from jqmaster.connection.together import Shared
from jqmaster.connection.wake import end
from jqmaster.doctor.facts import MOST_QUEUES
from jqmaster.engine.calling import pack
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.errors import JQError, Unavailable
from jqmaster.server.alerts import Alerts, verdict
from jqmaster.server.fanout import Fanout
from jqmaster.server.figures import STATES, WORKER_STATES, now_ms
from jqmaster.server.meters import Meters
from jqmaster.server.tally import EVENTS
from jqmaster.server.trends import OPEN

log = logging.getLogger("jqmaster.overview")

EVERY_S = 2.0
MINUTES = 60
_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
_SHOWN = ("name", "paused", "max_waiting", *STATES)
_MAY_BE = ("oldest_ready_ms",)
_TIMES = ("count", "mean", "p50", "p90", "p95", "p99", "max")
_TOP = 30
_PAGE = 200
_TRENDS_AT_ONCE = 5
_TREND_MINUTES = 30
_MOST_WORKERS = 1000
_MOST_CONSTRAINTS = 100
_FULLEST = 3
_REST = 200  # times as long as it took
_MOST_REST_S = 300.0
_STOP_S = 2.0
_FIRST_ALERTS_S = 1.0
_FIRST_ROUND_S = 0.5  # in one look
_MOST_LOOK_S = 5.0
_FORGOTTEN_S = 300.0

Ask = Callable[[], Awaitable[bool | None]]


class _Part:
    """Something that is looked at every so often, and less often when looking takes long. Where `ask` gives
    true there is more to see at the next look."""

    def __init__(self, every_s: float, ask: Ask) -> None:
        self._every_s = every_s
        self._ask = ask
        self._due = 0.0
        self._took: deque[float] = deque(maxlen=5)

    async def look(self) -> None:
        began = time.monotonic()
        if began < self._due:
            return
        if await self._ask():
            return
        self._took.append(time.monotonic() - began)
        # A little less than the beat, which may come early. The least of the last times: others had a part in more.
        self._due = began + max(self._every_s - 0.1, min(min(self._took) * _REST, _MOST_REST_S))


class Overview:
    """Looks at a namespace for those who follow it. Nothing to start; `stop` ends everybody's following."""

    def __init__(self, engine: Engine, *, meters: Meters | None = None, first_round_s: float = _FIRST_ROUND_S) -> None:
        self._meters = meters or Meters()
        self._engine = engine
        self._first_round_s = first_round_s
        self._known: dict[str, Document] = {}
        self._round: set[str] = set()
        self._cursor = ""
        self._round_began_ms = self._as_of_ms = 0
        self._top: list[str] = []
        self._trends: dict[str, Document] = {}
        self._turn = 0
        self._now_ms = 0
        self._minutes: list[list[int]] = []
        self._hour: Document | None = None
        self._workers: Document = {}
        self._constraints: Document = {"fullest": [], "count": 0, "more": False}
        self._alerts = Alerts(engine, self._meters)
        self._examining: asyncio.Task[None] | None = None
        self._parts = (
            _Part(EVERY_S, self._look_at_queues),
            _Part(EVERY_S, self._look_at_minutes),
            _Part(EVERY_S, self._look_at_trends),
            _Part(10.0, self._look_at_workers),
            _Part(10.0, self._look_at_constraints),
            _Part(30.0, self._look_at_hour),
        )
        self._examine = _Part(30.0, self._alerts.look)
        self._looking = Shared(self._look_now)
        self._looked_at = -EVERY_S
        self._packed = b""
        self._number = 0
        self._trouble: JQError | None = None
        self._followers = 0
        self._loop: asyncio.Task[None] | None = None
        self._fanout = Fanout()
        self._stopped = False

    async def document(self) -> bytes:
        """The document, packed, as of two seconds ago at most. Raises what the engine does, and Unavailable
        when that takes more than some seconds."""
        is_first = not self._alerts.is_known
        await self._look()
        if is_first and self._examining is not None:
            await asyncio.wait({self._examining}, timeout=_FIRST_ALERTS_S)
            self._pack()
        return self._packed

    async def follow(self, alive_every_s: float) -> AsyncGenerator[bytes | JQError | None, None]:
        """The document now, and whenever it was looked up again, until `stop`. In between: why that failed,
        or None when nothing came for a while."""
        self._followers += 1
        if self._loop is None or self._loop.done():
            self._loop = asyncio.create_task(self._run(), name="overview")
        seen = self._number if time.monotonic() - self._looked_at > EVERY_S else -1
        try:
            while not self._stopped:
                if self._number != seen and (self._packed or self._trouble):
                    seen = self._number
                    yield self._trouble or self._packed
                    continue
                if not await self._fanout.wait(alive_every_s):
                    yield None
        finally:
            self._followers -= 1
            if not self._followers and self._loop is not None:
                self._loop.cancel()
                self._loop = None

    def drain(self) -> None:
        """End what is followed, soon."""
        self._stopped = True
        self._tell()

    async def stop(self) -> None:
        """`drain`, and end what is under way; bounded."""
        self.drain()
        await end((self._loop, self._looking.task, self._examining), _STOP_S)

    # -- the loop ---------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._stopped:
            try:
                await self._look()
                self._trouble = None
            except JQError as problem:
                self._trouble = problem
            except Exception:
                log.exception("the overview failed")
            self._tell()
            await asyncio.sleep(EVERY_S)

    def _tell(self) -> None:
        self._number += 1
        self._fanout.tell()

    async def _look(self) -> None:
        if time.monotonic() - self._looked_at >= EVERY_S * 0.9:
            await self._looking.get(_MOST_LOOK_S + 1)

    async def _look_now(self) -> None:
        try:
            async with asyncio.timeout(_MOST_LOOK_S):
                await self._look_at_parts()
        except TimeoutError as late:
            raise Unavailable(f"Redis took more than {_MOST_LOOK_S:g} s", late) from late

    async def _look_at_parts(self) -> None:
        if time.monotonic() - self._looked_at > _FORGOTTEN_S:
            # Nobody looked for long: of many queues most would be as they were then, until a round is over.
            self._known, self._cursor, self._as_of_ms = {}, "", 0
        self._now_ms = await now_ms(self._engine)
        for part in self._parts:
            await part.look()
        if self._examining is None or self._examining.done():
            # By itself: it may take longer than anybody should wait for the rest.
            self._examining = asyncio.create_task(self._examine.look(), name="alerts")
        self._pack()
        self._looked_at = time.monotonic()

    # -- what is looked at ------------------------------------------------------------------------

    async def _look_at_queues(self) -> bool:
        """Go on through the queues; the first time, as far as there is time in each look. True: not through
        yet."""
        is_first = not self._as_of_ms
        ends = time.monotonic() + self._first_round_s
        if self._top and len(self._known) > _PAGE and not is_first:
            page = await self._engine.queues(self._top)
            queues = {str(document["name"]): document for document in page.documents}
            for name in self._top:
                self._known.pop(name, None)
            self._known.update(queues)
        while True:
            if not self._cursor:
                self._round, self._round_began_ms = set(), self._now_ms
            page = await self._engine.queues(cursor=self._cursor, count=_PAGE)
            for document in page.documents:
                self._known[document["name"]] = document
                self._round.add(document["name"])
            self._cursor = page.cursor
            if not page.cursor:
                for name in [name for name in self._known if name not in self._round]:
                    del self._known[name]
                self._as_of_ms = self._round_began_ms
                break
            if not is_first or time.monotonic() >= ends:
                break
        best = heapq.nlargest(_TOP, self._known.values(), key=_weight)
        self._top = [document["name"] for document in best]
        return not self._as_of_ms

    async def _look_at_minutes(self) -> None:
        from_ms = (self._now_ms // _MINUTE_MS - MINUTES) * _MINUTE_MS
        minutes = await self._engine.stats("minute", from_ms=from_ms, brief=True)
        self._minutes = [[minute["begin_ms"], *(minute[kind] for kind in EVENTS)] for minute in minutes]

    async def _look_at_trends(self) -> None:
        """Some of the queues shown, in turn."""
        for _ in range(min(_TRENDS_AT_ONCE, len(self._top))):
            self._turn = (self._turn + 1) % len(self._top)
            name = self._top[self._turn]
            from_ms = (self._now_ms // _MINUTE_MS - _TREND_MINUTES) * _MINUTE_MS
            minutes = await self._engine.stats("minute", queue=name, from_ms=from_ms, brief=True)
            self._trends[name] = _trend(minutes, from_ms, self._now_ms) | (await self._latest(name) or {})
        for name in [name for name in self._trends if name not in self._top]:
            del self._trends[name]

    async def _look_at_hour(self) -> None:
        self._hour = await self._latest()

    async def _latest(self, queue: str | None = None) -> Document | None:
        """How long jobs waited and ran, in the last hour in which there were any."""
        from_ms = (self._now_ms // _HOUR_MS - 1) * _HOUR_MS
        for hour in reversed(await self._engine.stats("hour", from_ms=from_ms, brief=True, queue=queue)):
            if hour["wait"]["count"] or hour["run"]["count"]:
                short = {kind: {name: hour[kind][name] for name in _TIMES} for kind in ("wait", "run")}
                return {"begin_ms": hour["begin_ms"], **short}
        return None

    async def _look_at_workers(self) -> None:
        """The registered ones, and those that pull and announce themselves."""
        pages = [await self._engine.workers(count=_MOST_WORKERS, others=others) for others in (None, True)]
        workers = [worker for page in pages for worker in page.documents if worker["state"] != "gone"]
        summary: Document = {
            "count": len(workers),
            "more": any(page.cursor for page in pages),
            **dict.fromkeys((*WORKER_STATES, "held", "slots", "slots_held", "asked"), 0),
        }
        for worker in workers:
            summary[worker["state"]] = summary.get(worker["state"], 0) + 1
            summary["held"] += worker["held"]
            summary["asked"] += worker.get("request") == "stop"
            # Who never said where it runs did not say either how many it takes: one is not the number then.
            if worker.get("url") or worker.get("host"):
                summary["slots"] += worker["max_jobs"] or 0
                summary["slots_held"] += worker["held"]
        self._workers = summary

    async def _look_at_constraints(self) -> None:
        """The fullest of the first hundred, by their fullest key."""
        page = await self._engine.constraints(count=_MOST_CONSTRAINTS, busiest=1)
        fullest = [_fullness(constraint) for constraint in page.documents]
        fullest.sort(key=lambda constraint: (-constraint["share"], -constraint["held"], constraint["id"]))
        self._constraints = {"fullest": fullest[:_FULLEST], "count": len(page.documents), "more": page.cursor != ""}

    # -- the document -----------------------------------------------------------------------------

    def _pack(self) -> None:
        totals = dict.fromkeys(STATES, 0)
        paused = waiting = 0
        for queue in self._known.values():
            paused += bool(queue["paused"])
            waiting += bool(queue["queued"])
            for state in STATES:
                totals[state] += queue[state]
        shown = [self._known[name] for name in self._top if name in self._known]
        top = [{**_short(queue), **self._trends.get(queue["name"], {})} for queue in shown]
        rest = {state: totals[state] - sum(queue[state] for queue in top) for state in STATES}
        alerts = self._alerts.documents(self._known, self._now_ms)
        self._packed = pack(
            {
                "now_ms": self._now_ms,
                "totals": totals,
                "queues": {
                    "count": len(self._known), "paused": paused, "top": top,
                    "as_of_ms": self._as_of_ms or self._now_ms, "more": not self._as_of_ms,
                    "rest": {"count": len(self._known) - len(top), **rest},
                },
                "minutes": self._minutes,
                "rates": self._rates(),
                "hour": self._hour,
                "workers": self._workers,
                "oldest": self._oldest(),
                "constraints": self._constraints,
                "verdict": verdict(alerts, is_least=waiting > MOST_QUEUES),
                "alerts": alerts,
            }
        )  # fmt: skip

    def _oldest(self) -> Document | None:
        """The queue whose oldest ready job waits longest, paused ones aside; None where nothing waits."""
        waiting = [queue for queue in self._known.values() if queue.get("oldest_ready_ms") and not queue["paused"]]
        oldest = min(waiting, key=lambda queue: (queue["oldest_ready_ms"], queue["name"]), default=None)
        return oldest and {"queue": oldest["name"], "ready_ms": oldest["oldest_ready_ms"]}

    def _rates(self) -> dict[str, float]:
        """Per second, over the last whole minute and what there is of the current one."""
        begin_ms = (self._now_ms // _MINUTE_MS - 1) * _MINUTE_MS
        seconds = (self._now_ms - begin_ms) / 1000
        sums = [0] * len(EVENTS)
        for minute in self._minutes:
            if minute[0] >= begin_ms:
                sums = [total + value for total, value in zip(sums, minute[1:], strict=True)]
        return {kind: round(total / seconds, 3) for kind, total in zip(EVENTS, sums, strict=True)}


def _weight(queue: Document) -> tuple[int, int, str]:
    return sum(queue[state] for state in OPEN), queue["error"], str(queue["name"])


def _short(queue: Document) -> Document:
    return {field: queue[field] for field in (*_SHOWN, *(field for field in _MAY_BE if field in queue))}


def _fullness(constraint: Document) -> Document:
    """How full a constraint is, of one with keys its fullest: of what may run at once, or start in its time, whichever
    is fuller."""
    key = next(iter(constraint.get("busiest") or []), {}) if constraint.get("by") else constraint
    uses = [
        (round(key.get(used, 0) / limit, 4), key.get(used, 0), limit, used)
        for used, limit in (
            ("running", constraint.get("concurrency")),
            ("starts", constraint.get("rate", {}).get("limit")),
        )
        if limit
    ]
    share, used, limit, of = max(uses, default=(0.0, 0, None, "running"))
    return {
        "id": constraint["id"], "by": key.get("by") if constraint.get("by") else None, "share": share, "used": used,
        "limit": limit, "of": of, "held": constraint.get("held") or 0,
        "keys": constraint["keys"] if constraint.get("by") else None,
    }  # fmt: skip


def _trend(minutes: list[Document], from_ms: int, now_ms: int) -> Document:
    """What was done by the minute, and rates per second of the last five minutes."""
    by_minute = {minute["begin_ms"]: minute for minute in minutes}
    recent_ms = (now_ms // _MINUTE_MS - 4) * _MINUTE_MS
    recent = [minute for minute in minutes if minute["begin_ms"] >= recent_ms]
    seconds = (now_ms - recent_ms) / 1000
    starts = range(from_ms, now_ms, _MINUTE_MS)
    return {
        "trend": [by_minute[start]["done"] if start in by_minute else 0 for start in starts],
        "rates": {
            "enqueued": round(sum(minute["enqueued"] for minute in recent) / seconds, 3),
            "done": round(sum(minute["done"] for minute in recent) / seconds, 3),
            "failed": round(sum(m["failed"] + m["lapsed"] + m["error"] for m in recent) / seconds, 3),
        },
    }
