"""What is known of all queues, kept for all who ask. Nobody waits for a look at very many: the first goes on by itself,
later ones go a part at a time, and rest in proportion, so that they keep to about a hundredth of Redis for good."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jqmaster.connection.together import Shared
from jqmaster.engine import ranking
from jqmaster.engine.engine import Operations
from jqmaster.engine.ranking import Looked
from jqmaster.engine.replies import Document, Page
from jqmaster.errors import Unavailable

EVERY_S = 2.0
_REST = 150  # times as long as a part took
_MOST_REST_S = 20.0
_PART_S = 0.03
_PATIENCE_S = 0.5  # of who asks while a look is under way
_FRESH_REST_S = 5.0  # of a look at those that are shown: what a page calls live is no older
_SILENT_S = 3.0  # then what is known is no answer any more
_MOST_LOOK_S = 20.0  # where nothing is known
_MOST_FRESH = 100  # queues that are shown
_MOST_KEPT = 4  # for different numbers of minutes


@dataclass
class _Known:
    looking: Shared[None]
    queues: dict[str, Document] = field(default_factory=dict)
    round: set[str] = field(default_factory=set)
    cursor: str = ""
    is_whole: bool = False  # all were seen once
    more: bool = False
    began: float = 0.0  # the round
    at: float = 0.0  # the round before, or this where it is the first
    due: float = 0.0
    fresh_due: float = 0.0
    asked: float = 0.0  # the first call since Redis answered last; 0: none

    @property
    def is_silent(self) -> bool:
        return bool(self.asked) and time.monotonic() - self.asked >= _SILENT_S


def _rested(began: float, most_s: float) -> float:
    """When the next look may begin after one that is over now."""
    now = time.monotonic()
    return now + min((now - began) * _REST, most_s)


@dataclass
class Rankings:
    """Looks at the queues of a namespace for those who ask. Nothing to start."""

    engine: Operations
    _known: dict[int, _Known] = field(default_factory=dict)

    async def look(self, minutes: int) -> tuple[Looked, int]:
        """The queues that were seen, and how old that is in ms. Raises what the engine does, and Unavailable when there
        is nothing to tell for long."""
        known = self._known.pop(minutes, None) or self._new(minutes)
        self._known[minutes] = known
        while len(self._known) > _MOST_KEPT:
            del self._known[next(iter(self._known))]
        if not known.is_whole or time.monotonic() >= known.due or known.is_silent:
            await self._wait(known)
        looked = Looked(list(known.queues.values()), known.more or not known.is_whole, not known.is_whole)
        return looked, round((time.monotonic() - known.at) * 1000)

    async def freshen(self, minutes: int, shown: Sequence[Document]) -> list[Document]:
        """Those of a ranking that are shown, as they are now, unless there was such a look just before."""
        known, began = self._known.get(minutes), time.monotonic()
        if known is None or began - known.at < EVERY_S or began < known.fresh_due or not 0 < len(shown) <= _MOST_FRESH:
            return list(shown)
        known.fresh_due = began + _FRESH_REST_S  # for others who ask meanwhile
        page = await self._ask(known, names=[queue["name"] for queue in shown], minutes=minutes)
        known.fresh_due = _rested(began, _FRESH_REST_S)
        queues = {str(queue["name"]): queue for queue in page.documents}
        known.queues.update(queues)
        return [queues.get(queue["name"], queue) for queue in shown]

    async def _wait(self, known: _Known) -> None:
        """For the look under way, or until there is something to tell."""
        ends = time.monotonic() + _MOST_LOOK_S
        while True:
            try:
                return await known.looking.get(_PATIENCE_S)
            except Unavailable:
                if known.looking.task is None or known.looking.task.done() or known.is_silent:
                    raise
                if known.queues:
                    return
                if time.monotonic() >= ends:
                    raise

    def _new(self, minutes: int) -> _Known:
        async def look() -> None:
            began = time.monotonic()
            while True:
                await self._look_on(known, minutes)
                if not known.cursor or (known.is_whole and time.monotonic() - began >= _PART_S):
                    break
            known.due = _rested(began, _MOST_REST_S)
            if not known.cursor:
                known.due = max(known.due, began + EVERY_S - 0.1)

        known = _Known(Shared(look))
        return known

    async def _look_on(self, known: _Known, minutes: int) -> None:
        """One call more."""
        if not known.cursor:
            known.round, known.began = set(), time.monotonic()
            known.at = known.at or known.began
        page = await self._ask(known, cursor=known.cursor, count=ranking.PAGE, minutes=minutes)
        for queue in page.documents:
            known.queues[queue["name"]] = queue
            known.round.add(queue["name"])
        is_over = not page.cursor or len(known.round) >= ranking.MOST_LOOKED
        known.cursor = "" if is_over else page.cursor
        if is_over:
            for name in known.queues.keys() - known.round:
                del known.queues[name]
            known.is_whole, known.more, known.at = True, bool(page.cursor), known.began

    async def _ask(self, known: _Known, **wanted: Any) -> Page:
        """Notes since when Redis says nothing."""
        known.asked = known.asked or time.monotonic()
        page = await self.engine.queues(**wanted)
        known.asked = 0.0
        return page
