"""Where somebody who looks for jobs of several partitions found nothing."""

from __future__ import annotations

import time
from typing import Any, Protocol

from jqmaster.connection.wake import Channel
from jqmaster.engine.waiting import note_s

Reply = list[Any]
"""Of `pick`, as the script gives it: `[next_ms, document, argument, …]`; of `assign` likewise."""


class Place(Protocol):
    """What is needed of a partition."""

    number: int
    channel: Channel | None
    quiet_s: float


class Quiet:
    """Where somebody found nothing. It is their own: another may get what they do not."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}  # by number: nothing can start until then, or the channel says so
        self._ready_at: dict[int, float] = {}  # when something becomes ready by time alone

    def until(self, place: Place) -> float:
        """0.0 where it may have something."""
        return self._until.get(place.number, 0.0)

    def note(self, place: Place, reply: Reply) -> None:
        """What it answered: if jobs, it may have more; else when there may be some."""
        next_ms = reply[0]
        if len(reply) > 1 or not next_ms:  # 0: there may be some at once
            self.over(place)
            return
        now = time.monotonic()
        self._until[place.number] = now + (place.quiet_s if place.channel is None else note_s(next_ms))
        self._ready_at[place.number] = now + next_ms / 1000 if next_ms > 0 else float("inf")

    def over(self, place: Place) -> None:
        """It may have something."""
        self._until.pop(place.number, None)
        self._ready_at.pop(place.number, None)

    def next_ms(self) -> int:
        """When something becomes ready by time alone, from now; -1 for never."""
        soonest = min(self._ready_at.values(), default=float("inf"))
        return -1 if soonest == float("inf") else max(1, round((soonest - time.monotonic()) * 1000))
