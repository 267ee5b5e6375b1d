"""A worker: runs functions for jobs, renews their leases, reports what became of them.

Where jobs come from is a source (`sources`: straight from Redis, or from a server; `push`: the server brings them).
The life of a job here is the same for all: start, heartbeat, outcome, report.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from jqmaster.connection.wake import backoff_s, end
from jqmaster.engine import tracing
from jqmaster.engine.replies import Job
from jqmaster.errors import JQError
from jqmaster.server import logs
from jqmaster.worker import ending as endings
from jqmaster.worker.attempts import Attempts, Running, now
from jqmaster.worker.ending import Outcome, summary
from jqmaster.worker.log import log
from jqmaster.worker.notes import JobStopped
from jqmaster.worker.sources import EngineSource, until_heard
from jqmaster.worker.threads import Threads, end_if_forked

STOP_TIMEOUT_S = 8.0
"""What running jobs have to finish when their worker stops: less than the 10 s that `docker stop` waits."""
END_S = 0.5  # then, for a coroutine that was cancelled to clean up
SAY_S = 1.0  # and to say what became of them
HANDOVER_S = 2.5  # so long a job that was given back stays put: by then whatever still runs of it here is gone
MOST_AT_ONCE = 1000  # jobs that a pick can bring
UNKNOWN_S = 1.0
REPORTERS = 2
STOPS = "its worker stops"


class Function(NamedTuple):
    """What runs the jobs of a name. `call` gives their result, or their whole ending; `retries` says of what it raises
    whether another attempt may follow."""

    call: Callable[[Job], Awaitable[Any]]
    retries: Callable[[BaseException], bool] | None = None


@dataclass(eq=False)
class Worker:
    """Runs jobs, `concurrency` at a time. `run` until told to stop.

    `functions` maps names of jobs to what runs them, some of it in `threads`; one of these that runs on when its job
    was given up keeps its slot. `on_outcome(outcome, state)` is called for every answer to a report, `on_stop()`
    when it begins to stop.
    """

    functions: Mapping[str, Function]
    source: EngineSource
    threads: Threads
    concurrency: int = 8
    fetches: bool = True
    drain_timeout_s: float = STOP_TIMEOUT_S
    on_outcome: Callable[[Outcome, str], object] = lambda *_: None
    on_stop: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self._fetching: asyncio.Timeout | None = None
        self._stopping = asyncio.Event()
        self._has_drained = False
        self._pid = os.getpid()
        self.attempts = Attempts(self.concurrency, self.source, self.threads, self.take, self._asked, self._answered)

    @property
    def outlived(self) -> bool:
        """Whether functions run on here whose jobs were given up: threads, and coroutines that swallow their cancel."""
        return self.threads.left > 0 or bool(self.attempts.running)

    @property
    def works(self) -> bool:
        """Whether nobody has told it to stop."""
        return not self._stopping.is_set()

    @property
    def running(self) -> list[Running]:
        """The attempts that run here, the first first. For any thread."""
        return list(self.attempts.running.values())

    def take(self, jobs: Iterable[Job], asked: float) -> None:
        """Run jobs that came, when they were `asked` for. One that this worker does not know is given back unstarted,
        and so are all when it stops."""
        takes = self.attempts.takes
        for job in jobs:
            if takes and job.name in self.functions:
                self.start(job, asked)
                continue
            message, delay = "", 0.0
            if job.name not in self.functions:
                message = f"this worker has no function for jobs named {job.name}"
                log.warning("job %s is given back: %s", job.id, message)
                # Where there are more names than it can refuse, the others come again, but not at once.
                delay = 0 if self.source.refuse(job.name) else UNKNOWN_S
            self.attempts.end(endings.released(job, message, delay))

    def start(self, job: Job, asked: float) -> None:
        """Run `job`, and report how it ended. Its lease began when it was `asked` for, or later."""
        loop = asyncio.get_running_loop()
        running = Running(job, lambda: loop.call_soon_threadsafe(self.attempts.said))
        running.leased(job.timeout if job.max_runtime is None else min(job.timeout, job.max_runtime), asked)
        running.task = loop.create_task(self._attend(running, self.functions[job.name]))
        self.attempts.add(running)

    async def run(self, stop: asyncio.Event, *, is_alone: bool = False) -> None:
        """Work until `stop` is set, or the worker is asked to stop; then finish what runs within
        `drain_timeout_s` and give the rest back. `is_alone`: nobody but a job can cancel this task."""
        works, lasts = lambda: self.works, lambda: not self._has_drained
        parts = [asyncio.create_task(lasting("heartbeats", self.attempts.beat, lasts))]
        parts += [asyncio.create_task(lasting("reports", self.attempts.report, lasts)) for _ in range(REPORTERS)]
        parts += [asyncio.create_task(lasting("listening", partial(self.source.listen, self.attempts.look), lasts))]
        getting = [asyncio.create_task(lasting("stopping", stop.wait, works))]
        getting[0].add_done_callback(lambda _: self._stopping.set())
        if self.fetches:
            getting += [asyncio.create_task(lasting("fetching", self._fetch, works))]
        try:
            await lasting("work", self._stopping.wait, lambda: is_alone)
        finally:
            self._stopping.set()
            self.on_stop()
            self.attempts.takes = False
            try:
                await end(getting, SAY_S)
                # Beside each other: a Redis that does not answer now may do so when the grace is over.
                await asyncio.gather(self.source.take_back(), self._drain())
            finally:  # also when it is cancelled meanwhile
                self._has_drained = True
                await end(parts, SAY_S)
                self.threads.stop()

    # -- one job ----------------------------------------------------------------------------------

    async def _attend(self, running: Running, function: Function) -> None:
        if running.ends <= now():  # this process stood still, or the pick waited: a heartbeat, which is due, says
            await self.attempts.until(lambda: running.ends > now())
        with running.opened(running.job), tracing.running(running.job) as note_end:
            ending = await self._ending_of(running, function)
            note_end(ending.spec)
        self.attempts.end(ending, running if running.is_used else None)

    async def _ending_of(self, running: Running, function: Function) -> Outcome:
        """Whatever the function raises is how this attempt ends; the worker and other jobs go on."""
        job = running.job
        try:
            result = await function.call(job)
            end_if_forked(self._pid)
            if isinstance(result, Outcome):
                return result
            return endings.succeeded(job, result, running.dumps)
        except BaseException as error:
            end_if_forked(self._pid, error)
            stops = issubclass(type(error), asyncio.CancelledError | JobStopped) and running.over is not None
            if stops:  # all else a job has raised itself: one of its own tasks that was cancelled, for example
                raise asyncio.CancelledError from error
            if running.over == STOPS:  # it is given back, and no retry is spent: it failed since it was cancelled
                log.warning("job %s (%s) failed as its worker stopped: %s", job.id, job.name, summary(error))
                raise asyncio.CancelledError from error
            return endings.raised(job, error, function.retries)

    def _answered(self, outcome: Outcome, state: str) -> None:
        """What became of a report. Only now is known whether there is a further attempt."""
        job = outcome.job
        if state.isupper():
            log.warning("job %s attempt %d: %s", job.id, job.attempt, state)
        elif state == "error":
            message = outcome.spec.get("message")
            log.error("job %s (%s) failed for good in attempt %d: %s", job.id, job.name, job.attempt, message)
        self.on_outcome(outcome, state)

    # -- getting jobs, and what is asked of the worker ---------------------------------------------

    async def _fetch(self) -> None:
        attempts = self.attempts
        while True:
            attempts.is_full = True
            await attempts.until(lambda: attempts.free > 0 and attempts.takes)
            attempts.is_full = False
            asked, fetch = now(), partial(self.source.fetch, min(attempts.free, MOST_AT_ONCE))
            try:
                async with asyncio.timeout(None) as self._fetching:
                    jobs = await until_heard("get jobs", fetch, gives_up=False)
                self.take(jobs, asked)
            except TimeoutError:  # asked to be quiet
                await self.source.take_back()

    def _asked(self, request: str) -> None:
        """What is asked of the worker: `quiet`, `stop`, or "" for neither."""
        attempts = self.attempts
        if not self.works or (attempts.takes == (not request) and request != "stop"):
            return
        log.warning("asked to %s", {"": "resume", "quiet": "be quiet"}.get(request, request))
        attempts.takes = not request
        attempts.changed()
        if request == "stop":
            self._stopping.set()
        if request and self._fetching is not None:
            # Who is quiet gets nothing, and what came meanwhile would not end the wait afterwards.
            with suppress(RuntimeError):  # it is over
                self._fetching.reschedule(0)

    # -- stopping ---------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Wait until nothing runs and all is said; what still runs when the time is up is given back."""
        if busy := len(self.running):
            name, wait_s = self.source.full_name, self.drain_timeout_s
            logs.say(log, f"worker {name} stops; it waits up to {wait_s:g} s for running jobs: {busy}")
        with suppress(TimeoutError):
            async with asyncio.timeout(self.drain_timeout_s):
                return await self.attempts.until(lambda: self.attempts.is_idle)
        left = self.running
        for running in left:
            running.stop(STOPS)
        try:
            async with asyncio.timeout(END_S + SAY_S):
                if left:
                    await asyncio.wait([running.task for running in left], timeout=END_S)
                    # Threads and processes go on until they are ended: limits of their jobs count them that long.
                    held = [running.job.held for running in left]
                    await self.source.release(held, HANDOVER_S, hold={"*": HANDOVER_S})
                await self.attempts.until(lambda: self.attempts.is_reported)
        except (TimeoutError, JQError) as error:
            log.warning("cannot report some outcomes, their leases will run out: %r", error)


async def lasting(name: str, part: Callable[[], Awaitable[object]], lasts: Callable[[], bool]) -> object:
    """Run a part of the worker until it returns, or is over when nothing `lasts`. Neither an error nobody foresaw ends
    it, nor a job that cancels all tasks that there are: it is told, and the part begins again."""
    failures = 0
    while True:
        try:
            if failures:
                await asyncio.sleep(backoff_s(failures - 1))
            return await part()
        except (Exception, asyncio.CancelledError):
            if not lasts():
                raise
            log.exception("the worker's %s failed, restarting it", name)
        failures += 1
