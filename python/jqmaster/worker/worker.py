"""A worker: runs functions for jobs, renews their leases, reports what became of them.

Where jobs come from is a source (`sources`: straight from Redis, or from a server; `push`: the server brings them).
The life of a job here is the same for all: start, heartbeat, outcome, report.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from jqmaster.connection.wake import backoff_s, end
from jqmaster.engine import tracing
from jqmaster.engine.replies import Job
from jqmaster.errors import JQError, NotFound
from jqmaster.server import logs
from jqmaster.worker import ending as endings
from jqmaster.worker.beats import Heartbeats
from jqmaster.worker.ending import Ending, Outcome, Release
from jqmaster.worker.failure import summary
from jqmaster.worker.notes import JobStopped, Notebook
from jqmaster.worker.reports import Reports
from jqmaster.worker.slots import Running, Slots, now
from jqmaster.worker.sources import EngineSource
from jqmaster.worker.threads import Threads, end_if_forked
from jqmaster.worker.trouble import Trouble, lasting

log = logging.getLogger("jqmaster.worker")

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


class Worker:
    """Runs jobs, `concurrency` at a time. `run` until told to stop.

    `functions` maps names of jobs to what runs them, some of it in `threads`; one of these that runs on when its job
    was given up keeps its slot. `on_outcome(outcome, state)` is called for every answer to a report.
    """

    def __init__(
        self,
        functions: Mapping[str, Function],
        source: EngineSource,
        threads: Threads,
        *,
        concurrency: int = 8,
        fetches: bool = True,
        drain_timeout_s: float = STOP_TIMEOUT_S,
        on_outcome: Callable[[Outcome, str], None] | None = None,
    ) -> None:
        self.functions = functions
        self.source = source
        self.slots = Slots(concurrency)
        self.trouble = Trouble()
        self._threads = threads
        self._fetches = fetches
        self._drain_timeout_s = drain_timeout_s
        self._on_outcome = on_outcome
        self.slots.left = lambda: threads.left
        threads.told = self.slots.changed
        self._fetching: asyncio.Future[list[Job]] | None = None
        self._stopping = asyncio.Event()
        self._pid = os.getpid()
        self._beats = Heartbeats(source, self.slots, self.trouble, self._asked)
        self._reports = Reports(source, self.slots, self.trouble, self._beats, self.take, self._answered)

    @property
    def outlived(self) -> bool:
        """Whether functions run on here whose jobs were given up: threads, and coroutines that swallow their cancel."""
        return self._threads.left > 0 or bool(self.slots.running)

    @property
    def running(self) -> list[Running]:
        """The attempts that run here, the first first. For any thread."""
        return list(self.slots.running.values())

    def take(self, jobs: Iterable[Job], asked: float) -> None:
        """Run jobs that came, when they were `asked` for. One that this worker does not know is given back unstarted,
        and so are all when it stops."""
        takes = self.slots.takes
        for job in jobs:
            if takes and job.name in self.functions:
                self.start(job, asked)
                continue
            release = Release(job)
            if job.name not in self.functions:
                message = f"this worker has no function for jobs named {job.name}"
                log.warning("job %s is given back: %s", job.id, message)
                # Where there are more names than it can refuse, those that it forgets come again, but not at once.
                release = Release(job, 0 if self.source.refuse(job.name) else UNKNOWN_S, message=message)
            self._reports.add(release)

    def start(self, job: Job, asked: float) -> None:
        """Run `job`, and report how it ended. Its lease began when it was `asked` for, or later."""
        loop = asyncio.get_running_loop()
        running = Running(job, Notebook(lambda: loop.call_soon_threadsafe(self._beats.said)))
        running.leased(job.timeout if job.max_runtime is None else min(job.timeout, job.max_runtime), asked)
        self.slots.running[job.held] = running
        running.task = loop.create_task(self._attend(running, self.functions[job.name]))
        # Cancelled before it began, it would never take itself off the list.
        running.task.add_done_callback(partial(self._gone, running))
        self._beats.started(running)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, or the worker is asked to stop; then finish what runs within
        `drain_timeout_s` and give the rest back."""
        parts = [asyncio.create_task(lasting("heartbeats", self._beats.run))]
        parts += [asyncio.create_task(lasting("reports", self._reports.run)) for _ in range(REPORTERS)]
        parts += [asyncio.create_task(lasting("listening", partial(self.source.listen, self._told)))]
        fetching = asyncio.create_task(lasting("fetching", self._fetch)) if self._fetches else None
        stops = [asyncio.create_task(event.wait()) for event in (stop, self._stopping)]
        try:
            await asyncio.wait(stops, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stopping.set()
            self.slots.takes = False
            await end([*stops, fetching], SAY_S)
            await self.source.take_back()
            await self._drain()
            await end(parts, SAY_S)
            self._threads.stop()

    # -- one job ----------------------------------------------------------------------------------

    async def _attend(self, running: Running, function: Function) -> None:
        if running.ends <= now():  # this process stood still, or the pick waited: a heartbeat, which is due, says
            await self.slots.until(lambda: running.ends > now())
        running.notes.open(running.job)
        with tracing.running(running.job) as attempt:
            ending = await self._ending_of(running, function)
            attempt.ended(getattr(ending, "spec", None))
        self._reports.add(ending, running if running.notes.is_used else None)

    def _gone(self, running: Running, _task: asyncio.Task[None]) -> None:
        self.slots.running.pop(running.job.held, None)
        self.slots.changed()

    async def _ending_of(self, running: Running, function: Function) -> Ending:
        """Whatever the function raises is how this attempt ends; the worker and other jobs go on."""
        job = running.job
        try:
            result = await function.call(job)
            end_if_forked(self._pid)
            if isinstance(result, Outcome | Release):
                return result
            return endings.succeeded(job, result, running.notes.dumps)
        except BaseException as error:
            end_if_forked(self._pid, error)
            stops = issubclass(type(error), asyncio.CancelledError | JobStopped) and running.notes.over is not None
            if stops:  # all else a job has raised itself: one of its own tasks that was cancelled, for example
                raise asyncio.CancelledError from error
            if running.notes.over == STOPS:  # it is given back, and no retry is spent: it failed since it was cancelled
                log.warning("job %s (%s) failed as its worker stopped: %s", job.id, job.name, summary(error))
                raise asyncio.CancelledError from error
            return endings.raised(job, error, function.retries)

    def _answered(self, outcome: Outcome, state: str) -> None:
        """What became of a report."""
        if state.isupper():
            log.warning("job %s attempt %d: %s", outcome.job.id, outcome.job.attempt, state)
        if self._on_outcome is not None:
            self._on_outcome(outcome, state)

    # -- getting jobs, and what the worker is told -------------------------------------------------

    async def _fetch(self) -> None:
        failures, slots, asked = 0, self.slots, None
        while True:
            slots.is_full = True
            await slots.until(lambda: slots.free > 0 and slots.takes)
            slots.is_full = False
            asked = asked or now()  # what was not answered is asked for again, and its jobs may run since
            self._fetching = asyncio.ensure_future(self.source.fetch(min(slots.free, MOST_AT_ONCE)))
            try:
                jobs = await self._fetching
            except asyncio.CancelledError:
                if self._fetching.done() and not self._fetching.cancelled() and not self._fetching.exception():
                    self.take(self._fetching.result(), asked)
                # Only this fetch was cancelled when the worker was asked to be quiet.
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
                await self.source.take_back()
                asked = None
            except JQError as error:
                if isinstance(error, NotFound) and await self.source.register_again():
                    continue
                self.trouble.met("get jobs", error)
                await asyncio.sleep(backoff_s(failures))
                failures += 1
            else:
                self.trouble.over("get jobs")
                self.take(jobs, asked)
                failures, asked = 0, None

    def _told(self, message: str) -> None:
        """What came over the worker's channel; "" for a gap."""
        word, *key = message.split(" ")
        if word in ("cancelled", "kicked"):
            # Its token is nobody's business but ours: the attempt's number stands for it.
            for running in self.running:
                if key == [running.job.id, str(running.job.attempt)]:
                    self.slots.stop(running.job.held, "CANCELLED" if word == "cancelled" else "LOST")
        elif word in ("quiet", "stop", "resume"):
            self._asked("" if word == "resume" else word)
        elif not word:
            self._beats.look()

    def _asked(self, request: str) -> None:
        """What is asked of the worker: `quiet`, `stop`, or "" for neither."""
        slots = self.slots
        if self._stopping.is_set() or (slots.takes == (not request) and request != "stop"):
            return
        log.warning("asked to %s", {"": "resume", "quiet": "be quiet"}.get(request, request))
        slots.takes = not request
        slots.changed()
        if request == "stop":
            self._stopping.set()
        if request and self._fetching is not None:
            # Who is quiet gets nothing, and what came meanwhile would not end the wait afterwards.
            self._fetching.cancel()

    # -- stopping ---------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Wait until nothing runs and all is said; what still runs when the time is up is given back."""
        if busy := len(self.running):
            jobs = "1 job that runs" if busy == 1 else f"{busy} jobs that run"
            name, wait_s = self.source.full_name, self._drain_timeout_s
            logs.say(log, f"worker {name} stops; it waits up to {wait_s:g} s for {jobs}")
        try:
            async with asyncio.timeout(self._drain_timeout_s):
                await self.slots.until(lambda: self.slots.is_idle)
        except TimeoutError:
            await self._leave()

    async def _leave(self) -> None:
        if left := self.running:
            for running in left:
                running.stop(STOPS)
            await asyncio.wait([running.task for running in left], timeout=END_S)
            # Threads and processes go on until they are ended: limits of their jobs count them that long.
            held = [running.job.held for running in left]
            await self._say(self.source.release(held, delay=HANDOVER_S, hold={"*": HANDOVER_S}))
        await self._say(self.slots.until(lambda: not (self.slots.ended or self.slots.reporting)))

    async def _say(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(SAY_S):
                await work
        except (TimeoutError, JQError) as error:
            log.warning("cannot report some outcomes, their leases will run out: %r", error)
