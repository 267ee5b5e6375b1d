"""What each receiver may take up of a server, and when one that fails is left alone for a while.

One that hangs keeps its deliveries until their leases lapse. So each may have as many under way as are free for all
others: one has at most a half, of two that fill up together each a third, of n each one in n + 1. One that fails again
and again is given nothing for a while (a circuit breaker), then a single job, and after each that fails twice as long
nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from jqmaster.server.meters import Meters

log = logging.getLogger("jqmaster.dispatch")

FAILURES = 5  # in a row
FIRST_PAUSE_S, MOST_PAUSE_S = 1.0, 300.0
FORGET_S = 60.0  # after its last failure, or its pause, what was known of a receiver is no longer true


@dataclass(slots=True)
class _Receiver:
    url: str
    under_way: int = 0
    failures: int = 0  # in a row
    pause_s: float = 0.0  # 0 while its circuit is closed
    until: float = 0.0  # it is open; then half open, for a single delivery


class Breakers:
    """`take` before each delivery and `done` after it; `without` says whom to pass over meanwhile. `again` is called
    when that may have changed. `what` they are, for the log."""

    def __init__(self, most: int, meters: Meters, again: Callable[[], None], what: str = "worker") -> None:
        self._most = most
        self._what = what
        self._meters = meters
        self._again = again
        self._known: dict[str, _Receiver] = {}
        self._under_way = 0
        self._is_bounded = False

    def without(self) -> dict[str, float]:
        """Ids of receivers that get nothing now, and for how many seconds more, as far as that is known."""
        now = time.monotonic()
        for receiver, state in list(self._known.items()):
            if not state.under_way and now > state.until + FORGET_S:
                self._close(receiver, state)
                del self._known[receiver]
        failing = [id for id, state in self._known.items() if state.pause_s and (state.under_way or now < state.until)]
        free = self._most - self._under_way
        full = [id for id, state in self._known.items() if not state.pause_s and state.under_way >= max(1, free)]
        self._is_bounded = bool(full)
        return {receiver: max(0.0, self._known[receiver].until - now) for receiver in failing + full}

    def take(self, receiver: str, url: str) -> bool:
        """Note a delivery. False: it must not be, as one that is to show whether the receiver is well is under way."""
        state = self._known.setdefault(receiver, _Receiver(url))
        if state.pause_s and state.under_way:
            return False
        state.under_way += 1
        self._under_way += 1
        return True

    def done(self, receiver: str, trouble: str) -> None:
        """A delivery has ended. `trouble`: what was wrong with the receiver; "" for nothing that is its fault."""
        state = self._known[receiver]
        state.under_way -= 1
        self._under_way -= 1
        if not trouble:
            if state.pause_s:
                log.warning("%s %s at %s recovered; pushing resumed", self._what, receiver, state.url)
            self._close(receiver, state)
            if not state.under_way:
                del self._known[receiver]
        elif not state.pause_s or time.monotonic() >= state.until:  # else it was under way when the circuit opened
            state.failures += 1
            state.until = time.monotonic()
            if state.failures >= FAILURES:
                self._open(receiver, state, trouble)
        if self._is_bounded:
            self._again()

    def _open(self, receiver: str, state: _Receiver, trouble: str) -> None:
        state.pause_s = min(state.pause_s * 2 or FIRST_PAUSE_S, MOST_PAUSE_S)
        state.until += state.pause_s
        why = f"{state.failures} deliveries to {state.url} in a row failed: {trouble}"
        self._meters.breakers[receiver] = why
        log.warning("circuit open for %g s: %s %s: %s", state.pause_s, self._what, receiver, why)
        asyncio.get_running_loop().call_later(state.pause_s, self._again)

    def _close(self, receiver: str, state: _Receiver) -> None:
        state.failures, state.pause_s = 0, 0.0
        self._meters.breakers.pop(receiver, None)
