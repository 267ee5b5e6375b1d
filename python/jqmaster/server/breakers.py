"""What each worker may take up of a master, and when state that fails is left alone for a while.

A worker that hangs keeps its deliveries until their leases lapse. So each may have as many under way as are free
for all others: state has at most a half, of two that fill up together each a third, of n each state in n + 1. One that
fails again and again is given nothing for a while (a breaker), then a single job, and after each that fails twice as
long nothing.
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
SAY_EVERY_S = 10.0
FORGET_S = 60.0  # so long behind its pause a worker that got no job is there no more, or has nothing to do
MOST_WITHOUT = 200  # that `assign` takes


@dataclass(slots=True)
class _WorkerState:
    url: str
    under_way: int = 0
    failures: int = 0  # in a row
    pause_s: float = 0.0  # while the breaker is open
    until: float = 0.0
    is_trial: bool = False
    said: float = -SAY_EVERY_S


class Breakers:
    """`take` before each delivery and `done` after it; `without` says whom to pass over meanwhile. `again` is called
    when that may have changed."""

    def __init__(self, most: int, meters: Meters, again: Callable[[], None], what: str = "worker") -> None:
        self._most = most
        self._what = what
        self._meters = meters
        self._again = again
        self._known: dict[str, _WorkerState] = {}
        self._under_way = 0
        self._is_bounded = False

    def without(self) -> list[str]:
        """Ids of workers that get nothing now."""
        now = time.monotonic()
        for worker, state in list(self._known.items()):
            if state.pause_s and not state.under_way and now > state.until + max(FORGET_S, state.pause_s):
                self._forget(worker)
        self._is_bounded = False
        return [worker for worker, state in self._known.items() if self._is_out(worker, state, now)][:MOST_WITHOUT]

    def out_s(self, worker: str) -> float | None:
        """For how many seconds more it gets nothing, 0 when that is not known; None: it may get something."""
        state, now = self._known.get(worker), time.monotonic()
        if state is None or not self._is_out(worker, state, now):
            return None
        return max(0.0, state.until - now)

    def take(self, worker: str, url: str) -> bool:
        """Note a delivery. False: it must not be, as state that is to show whether the worker is well is under way."""
        state = self._known.setdefault(worker, _WorkerState(url))
        if state.pause_s and state.under_way:
            return False
        state.is_trial = state.pause_s > 0
        state.under_way += 1
        self._under_way += 1
        return True

    def done(self, worker: str, trouble: str) -> None:
        """A delivery has ended. `trouble`: what was wrong with the worker; "" for nothing that is its fault."""
        state = self._known[worker]
        state.under_way -= 1
        self._under_way -= 1
        was_trial, state.is_trial = state.is_trial, False
        if not trouble:
            if state.pause_s:
                log.warning("%s %s at %s recovered; pushing resumed", self._what, worker, state.url)
            state.failures, state.pause_s = 0, 0.0
            self._meters.breakers.pop(worker, None)
            if not state.under_way:
                self._forget(worker)
        elif not state.pause_s or was_trial:
            state.failures += 1
            if state.failures >= FAILURES:
                self._leave_alone(worker, state, trouble)
        if self._is_bounded:
            self._again()

    def _leave_alone(self, worker: str, state: _WorkerState, trouble: str) -> None:
        state.pause_s = min(state.pause_s * 2 or FIRST_PAUSE_S, MOST_PAUSE_S)
        state.until = time.monotonic() + state.pause_s
        self._meters.breakers[worker] = f"{state.failures} deliveries to {state.url} in a row failed: {trouble}"
        log.warning(
            "circuit open for %g s: %s %s: %s", state.pause_s, self._what, worker, self._meters.breakers[worker]
        )  # fmt: skip
        asyncio.get_running_loop().call_later(state.pause_s, self._again)

    def _is_out(self, worker: str, state: _WorkerState, now: float) -> bool:
        if state.pause_s:
            return state.under_way > 0 or now < state.until
        if state.under_way < self._most - self._under_way or not state.under_way:
            return False
        self._is_bounded = True
        if now >= state.said + SAY_EVERY_S:
            state.said = now
            log.warning(
                "%s %s at %s has %d of %d deliveries under way; the rest is left to others",
                self._what, worker, state.url, state.under_way, self._most,
            )  # fmt: skip
        return True

    def _forget(self, worker: str) -> None:
        self._meters.breakers.pop(worker, None)
        del self._known[worker]
