"""Queues in order of how they do: by age, rate, cause, any column of a table. All queues are looked at, page by page,
up to a number, so that the order is of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jqmaster.engine.operations import CallsByName
from jqmaster.engine.replies import Document
from jqmaster.errors import Invalid

MINUTES, MOST_MINUTES = 15, 180
COUNT, MOST_COUNT = 50, 1000
MOST_LOOKED = 20_000
ORDERS = (
    "name", "queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled", "skipped", "oldest",
    "cause", "net", "empties", "wait", "run", "enqueued", "ended", "workers",
)  # fmt: skip
PAGE = 1000
_STATES = ("queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled", "skipped")
_CAUSES = ("no worker", "unknown job", "constraint", "slow", "paused")
_LEFT = ("done", "error", "cancelled", "skipped", "moved")


class Looked(NamedTuple):
    """Queues with how they do; `more`: there are others; `counting`: which will be looked at soon."""

    queues: Sequence[Document]
    more: bool
    counting: bool = False


def net_of(queue: Document) -> float | None:
    """By how many jobs a minute it grows; None where nothing is counted."""
    recent = queue.get("recent")
    if recent is None:
        return None
    return float((recent["enqueued"] - sum(recent[kind] for kind in _LEFT)) * 60_000 / recent["span_ms"])


def _count(state: str) -> Callable[[Document], Any]:
    return lambda queue: queue[state] or None


def _recent(kind: str) -> Callable[[Document], Any]:
    return lambda queue: queue.get("recent", {}).get(kind)


def _p95(kind: str) -> Callable[[Document], Any]:
    return lambda queue: queue.get("recent", {}).get(kind, {}).get("p95")


def _age(queue: Document) -> float | None:
    since_ms = queue.get("oldest_ready_ms")
    return None if since_ms is None else -since_ms


def _cause(queue: Document) -> int | None:
    return -_CAUSES.index(queue["cause"]) if "cause" in queue else None


# What the greatest comes first of, and, but for names, nothing last.
_VALUES: dict[str, Callable[[Document], Any]] = {
    **{state: _count(state) for state in _STATES},
    "oldest": _age, "cause": _cause, "net": net_of, "empties": lambda queue: queue.get("empties_ms"),
    "wait": _p95("wait"), "run": _p95("run"), "enqueued": _recent("enqueued"), "ended": _recent("done"),
    "workers": lambda queue: queue["workers"] or None,
}  # fmt: skip


def ranked(
    found: Looked, by: str = "oldest", *, turned: bool = False, text: str = "", first: int = 0, count: int = COUNT
) -> Document:
    """``{queues, total, looked, more, counting}``: ``count`` queues behind the ``first`` of those whose name contains
    ``text``. Raises Invalid."""
    if by not in ORDERS:
        raise Invalid(f"expected one of {', '.join(ORDERS)}, got {by!r}", "by")
    for name, value, least, most in (("count", count, 1, MOST_COUNT), ("first", first, 0, MOST_LOOKED)):
        if not least <= value <= most:
            raise Invalid(f"expected an integer from {least} to {most}, got {value}", name)
    fitting = sorted((queue for queue in found.queues if text in queue["name"]), key=lambda queue: str(queue["name"]))
    if by == "name":
        order = fitting[::-1] if turned else fitting
    else:
        value_of = _VALUES[by]
        some = [queue for queue in fitting if value_of(queue) is not None]
        order = sorted(some, key=value_of, reverse=not turned)
        order += [queue for queue in fitting if value_of(queue) is None]
    shown = order[first : first + count]
    looked = {"looked": len(found.queues), "more": found.more, "counting": found.counting}
    return {"queues": shown, "total": len(order), **looked}


class RankingCalls(CallsByName):
    """For those who look for the queue that does worst."""

    async def ranking(
        self, by: str = "oldest", *, turned: bool = False, text: str = "", minutes: int = MINUTES,
        first: int = 0, count: int = COUNT,
    ) -> Document:  # fmt: skip
        """``{queues, total, looked, more, counting, age_ms}``: a part of all queues whose names contain ``text``, with
        how they do (``queues`` with ``minutes``), the worst first: in order of ``oldest``, ``cause``,
        ``net`` (how fast it grows), ``empties`` (how long that takes), ``wait``, ``run`` (95th percentiles),
        ``enqueued``, ``ended`` (done), ``workers``, a state, or ``name``. ``turned``: the other way round; who has no
        such figure comes last all the same. ``total``: how many fit; ``looked``: how many queues were looked at, and
        with ``more`` there are others. ``counting``: a master looks at these still, for the first time: there are at
        least so many. ``age_ms``: how old that is; of those shown some may be younger. Raises Invalid.
        """
        ranked(Looked([], False), by, first=first, count=count)  # nothing is asked in vain
        found = await self.look_at_queues(minutes)
        return {**ranked(found, by, turned=turned, text=text, first=first, count=count), "age_ms": 0}

    async def look_at_queues(self, minutes: int = MINUTES) -> Looked:
        """All queues with how they do, up to ``MOST_LOOKED``. Raises Invalid."""
        queues: list[Document] = []
        cursor = ""
        while True:
            page = await self.queues(minutes=minutes, cursor=cursor, count=PAGE)
            queues += page.documents
            cursor = page.cursor
            if not cursor or len(queues) >= MOST_LOOKED:
                return Looked(queues, bool(cursor))
