"""Workers as processes that are restarted one after the other, and what became of each: for rolling.py."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from processes import Process

READY = ("is ready", "listens on")
ORPHANS_S = 2.0  # what a worker has started may outlive it so long
MOST_SAID = 1000
KILLED_S = 40.0  # a worker that has not ended by then is killed, or its jobs would never end


def processes(marks: Mapping[str, str], number: str) -> dict[int, int]:
    """Of each process that lives and has these variables: what it has as `number`. A process passes them on to all that
    it starts, whatever group or session that makes for itself; one that is dead has none."""
    wanted = {f"{name}={value}".encode() for name, value in marks.items()}
    found = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            variables = set(path.read_bytes().split(b"\0"))
            if wanted <= variables:
                [value] = [int(one[len(number) + 1 :]) for one in variables if one.startswith(f"{number}=".encode())]
                found[int(path.parent.name)] = value
    return found


@dataclass(eq=False)
class Worker:
    """One process. Times are of the monotonic clock."""

    way: str
    name: str
    number: int
    process: Process
    told: float | None = None  # to stop
    seen: float = 0.0  # when it certainly ran
    ended: float | None = None
    code: int | None = None
    stayed: bool = False
    orphans: int = 0
    said: str = ""  # last, when something was wrong
    over: bool = False

    @property
    def is_ready(self) -> bool:
        return any(ready in self.process.text for ready in READY)

    @property
    def port(self) -> int:
        """Where one that is pushed to listens; 0 for others."""
        found = re.search(r"listens on http://[^ ]*:(\d+)", self.process.text)
        return int(found[1]) if found else 0

    @property
    def last(self) -> str:
        """The last it said; of one that stops, since it does."""
        text = self.process.text
        return text[max(text.rfind(" stops; "), len(text) - MOST_SAID) :]

    @property
    def stop_s(self) -> float:
        """How long it took to end, at least."""
        return max(0.0, self.seen - self.told) if self.told is not None else 0.0


@dataclass
class Fleet:
    """The workers of one way: `size` of them, of which one after the other is replaced. `start(number, name, port)`
    starts a process; `numbers` are of workers of all ways."""

    way: str
    size: int
    grace_s: float
    over_s: float  # beyond its grace a worker that stops may take so long
    start: Callable[[int, str, int], Process]
    dice: random.Random
    numbers: Iterator[int]
    workers: list[Worker] = field(default_factory=list)
    after: list[Worker] = field(default_factory=list)  # these end before another begins at their address

    def fill(self) -> None:
        for _ in range(self.size):
            self._begin(f"{self.way}-{len(self.workers)}")

    def _begin(self, name: str, port: int = 0) -> None:
        number = next(self.numbers)
        self.workers.append(Worker(self.way, name, number, self.start(number, name, port)))

    def restart(self) -> None:
        """Stop the one that works for the longest time, and start another beside it."""
        old = next((one for one in self.workers if one.told is None and one.is_ready), None)
        if old is None:
            return
        how = self.dice.random()
        self.stop(old)
        if how < 0.15 and old.port:
            self.after.append(old)
        else:
            self._begin(old.name if how < 0.3 else f"{self.way}-{len(self.workers)}")

    def stop(self, worker: Worker) -> None:
        """As a service manager does it: one process is told, or all of its group."""
        worker.told = time.monotonic()
        if self.dice.random() < 0.25:
            os.killpg(worker.process.pid, signal.SIGTERM)
        else:
            worker.process.signal(signal.SIGTERM)

    @property
    def is_ready(self) -> bool:
        """Whether all work that are not to stop."""
        return not self.after and all(one.is_ready for one in self.workers if one.told is None)

    def stop_all(self) -> None:
        for worker in self.workers:
            if worker.told is None and not worker.process.has_ended:
                self.stop(worker)

    @property
    def is_over(self) -> bool:
        return all(one.over for one in self.workers)

    def watch(self, now: float, alive: Mapping[int, int]) -> None:
        """See which have ended. `alive`: as of `now`, or later."""
        for worker in self.workers:
            if worker.over:
                continue
            if worker.ended is None and worker.process.has_ended:
                worker.ended, worker.code = now, worker.process.ends(0)
            elif worker.process.pid in alive:
                worker.seen = now
            if worker.ended is not None:
                self._left(worker, now, alive)
            elif worker.told is not None:
                self._overdue(worker, now)
        for old in [one for one in self.after if one.ended is not None]:
            self.after.remove(old)
            self._begin(old.name, old.port)

    def _left(self, worker: Worker, now: float, alive: Mapping[int, int]) -> None:
        left = [pid for pid, number in alive.items() if number == worker.number]
        if left and worker.ended is not None and now < worker.ended + ORPHANS_S:
            return
        worker.orphans, worker.over = len(left), True
        if worker.orphans or worker.code or worker.told is None:
            worker.said = worker.said or worker.last
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with worker.process:  # whose log goes
            pass

    def _overdue(self, worker: Worker, now: float) -> None:
        if not worker.stayed and worker.stop_s > self.grace_s + self.over_s:
            worker.stayed, worker.said = True, worker.last
        if worker.stop_s > self.grace_s + KILLED_S:
            worker.process.kill()
