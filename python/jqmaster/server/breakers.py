"""What each receiver may take up of a server, and when one that fails is left alone for a while.

One that hangs keeps its deliveries until their leases lapse. So each may have as many under way as are free for all
others: one has at most a half, of two that fill up together each a third, of n each one in n + 1. One that fails again
and again, or does not answer in time, is given nothing for a while (a circuit breaker), then a single job, and after
each that fails twice as long nothing.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Literal

from jqmaster.server.meters import Meters

log = logging.getLogger("jqmaster.dispatch")

FAILURES = 5  # in a row
MOST_PAUSE_S = 300.0
FULL_S = 0.05  # when to look again at one that has as much as it may
FORGET_S = 60.0  # after its last failure, or its pause, what was known of a receiver is no longer true
State = Literal["well", "failing", "hung", "unknown"]


@dataclass(slots=True)
class _Receiver:
    under_way: int = 0
    failures: int = 0  # in a row
    until: float = 0.0  # its circuit is open; then half open, for a single delivery

    @property
    def is_failing(self) -> bool:
        return self.failures >= FAILURES


class Breakers:
    """`take` before each delivery and `done` after it; `without` says whom to pass over meanwhile. `what` they are, for
    the log."""

    def __init__(self, most: int, meters: Meters, what: str = "worker") -> None:
        self._most = most
        self._what = what
        self._open = meters.breakers
        self._known: dict[str, _Receiver] = {}

    def without(self) -> dict[str, float]:
        """Ids of receivers that get nothing now, and in how many seconds to look again."""
        now = time.monotonic()
        for receiver, state in list(self._known.items()):
            if not state.under_way and (not state.failures or now > state.until + FORGET_S):
                self._open.discard(receiver)
                del self._known[receiver]
        free = max(1, self._most - sum(state.under_way for state in self._known.values()))
        full = {id for id, state in self._known.items() if state.under_way >= (1 if state.is_failing else free)}
        pauses = ((id, state.until - now) for id, state in self._known.items())
        return {id: max(FULL_S, pause_s) for id, pause_s in pauses if id in full or pause_s > 0}

    def take(self, receiver: str) -> bool:
        """Note a delivery. False: it must not be, as the circuit has just opened, or one is under way that is to show
        whether the receiver is well."""
        state = self._known.setdefault(receiver, _Receiver())
        if time.monotonic() < state.until or (state.is_failing and state.under_way):
            return False
        state.under_way += 1
        return True

    def done(self, receiver: str, how: State, why: str = "") -> None:
        """A delivery has ended, and showed how the receiver is; the log says `why`. `hung`: it did not answer in time;
        another delivery would cost another job an attempt."""
        state, now = self._known[receiver], time.monotonic()
        state.under_way -= 1
        if how == "well":
            if state.is_failing:
                log.warning("%s %s recovered; pushing resumed", self._what, receiver)
            self._open.discard(receiver)
            state.failures, state.until = 0, 0.0
        elif how != "unknown" and now >= state.until:  # else it was under way when the circuit opened
            state.failures, state.until = max(state.failures + 1, FAILURES if how == "hung" else 0), now
            if state.is_failing:
                pause_s = min(2.0 ** min(state.failures - FAILURES, 9), MOST_PAUSE_S)
                state.until += pause_s
                self._open.add(receiver)
                log.warning("circuit open for %g s: %s %s at %s", pause_s, self._what, receiver, why)
