"""When a receiver that fails is left alone for a while: a circuit breaker for each.

One that fails again and again, or does not answer in time, is given nothing for a while, then a single job, and after
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
TRIAL_S = 0.05  # when to look again at one that is tried
FORGET_S = 60.0  # after its last failure, or its pause, what was known of a receiver is no longer true
State = Literal["well", "failing", "hung", "unknown"]


@dataclass(slots=True)
class _Circuit:
    failures: int = 0  # in a row
    until: float = 0.0  # it is open; then half open, for a single delivery
    is_tried: bool = False

    @property
    def is_failing(self) -> bool:
        return self.failures >= FAILURES

    @property
    def pause_s(self) -> float:
        least_s = TRIAL_S if self.is_tried else 0.0
        return max(least_s, self.until - time.monotonic()) if self.is_failing else 0.0


class Breakers:
    """`take` before each delivery and `done` after it; `without` says whom to pass over meanwhile. `what` they are, for
    the log."""

    def __init__(self, meters: Meters, what: str = "worker") -> None:
        self._what = what
        self._circuits: dict[str, _Circuit] = {}  # of those that failed
        meters.breakers.append(self.without)

    def without(self) -> dict[str, float]:
        """Ids of receivers that get nothing now, and in how many seconds to look again."""
        return {id: pause_s for id, circuit in self._circuits.items() if (pause_s := circuit.pause_s)}

    def take(self, receiver: str) -> float:
        """For how many seconds it gets nothing; 0: a delivery is noted."""
        circuit = self._circuits.get(receiver, _Circuit())
        if not (pause_s := circuit.pause_s):
            circuit.is_tried = circuit.is_failing
        return pause_s

    def done(self, receiver: str, how: State, why: str = "") -> None:
        """A delivery has ended, and showed how the receiver is; the log says `why`. `hung`: it did not answer in time;
        another delivery would cost another job an attempt."""
        circuit, now = self._circuits.get(receiver, _Circuit()), time.monotonic()
        circuit.is_tried = False
        if how == "well":
            if circuit.is_failing:
                log.warning("%s %s recovered; pushing resumed", self._what, receiver)
            self._circuits.pop(receiver, None)
        elif how != "unknown" and now >= circuit.until:  # else it was under way when the circuit opened
            self._circuits = {id: state for id, state in self._circuits.items() if now < state.until + FORGET_S}
            circuit = self._circuits.setdefault(receiver, _Circuit())
            circuit.failures, circuit.until = max(circuit.failures + 1, FAILURES if how == "hung" else 0), now
            if circuit.is_failing:
                pause_s = min(2.0 ** min(circuit.failures - FAILURES, 9), MOST_PAUSE_S)
                circuit.until += pause_s
                log.warning("circuit open for %g s: %s %s at %s", pause_s, self._what, receiver, why)
