"""A worker: runs functions for jobs, renews their leases, reports what became of them.

Where jobs come from is a `Source` (`sources`: over HTTP or straight from Redis; `push`: the master
brings them). The life of a job here is the same for all: start, heartbeat, outcome, report.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any

import msgpack

from jqmaster.connection.wake import backoff_s, end
from jqmaster.engine import tracing
from jqmaster.engine.replies import Job
from jqmaster.errors import JQError, NotFound
from jqmaster.worker import ending as endings
from jqmaster.worker.beats import Key, Running, Source
from jqmaster.worker.contact import Contact
from jqmaster.worker.ending import Ending, JobReleased, Outcome, Release, ResumeAfter
from jqmaster.worker.failure import JobFailed, summary
from jqmaster.worker.notes import JobStopped, Notebook
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
STOPS = "its worker stops"

Function = Callable[[Any], Any]


class Worker:
    """Runs jobs, `concurrency` at a time. `run` until told to stop.

    `functions` maps names of jobs to callables that take the argument and return the result; plain ones run
    in `threads`; one that runs on when its job was given up keeps its slot.
    `on_outcome(outcome, state)` is called for every answer to a report.
    """

    def __init__(
        self,
        functions: Mapping[str, Function],
        source: Source,
        *,
        concurrency: int = 8,
        fetches: bool = True,
        drain_timeout_s: float = STOP_TIMEOUT_S,
        on_outcome: Callable[[Outcome, str], None] | None = None,
        threads: Threads | None = None,
    ) -> None:
        self.functions = functions
        self.concurrency = concurrency
        self._source = source
        self._fetches = fetches
        self._drain_timeout_s = drain_timeout_s
        self._on_outcome = on_outcome
        self._threads = threads or Threads(concurrency)
        self.trouble = Trouble()
        self.reserved = 0
        self._is_full = False
        self._room_came = asyncio.Event()
        self.make_room = self._threads.told = self._room_came.set
        self._fetching: asyncio.Future[list[Job]] | None = None
        self._awake = asyncio.Event()  # not asked to be quiet
        self._awake.set()
        self._asked_to_stop = asyncio.Event()
        self.draining = asyncio.Event()
        self._contact = Contact(source, self)

    @property
    def free(self) -> int:
        """How many more jobs may start now."""
        unreported = max(0, self._contact.unreported - self.concurrency)  # else jobs would end faster than it is said
        return self.concurrency - self.busy - self.reserved - self._threads.left - unreported

    @property
    def busy(self) -> int:
        """How many jobs run now."""
        return len(self._contact.running)

    @property
    def outlived(self) -> bool:
        """Whether functions run on here whose jobs were given up: threads, and coroutines that swallow their cancel."""
        return self._threads.left > 0 or bool(self.busy)

    @property
    def running(self) -> list[Running]:
        """The attempts that run here, the first first. For any thread."""
        return list(self._contact.running.values())

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, and all is said."""
        return not self.busy and not self._contact.unreported

    async def idle(self) -> None:
        """Wait until it is."""
        await self._until(lambda: self.is_idle)

    def take(self, jobs: Iterable[Job]) -> None:
        """Run jobs that came. One that came too late, or that this worker does not know, is given back unstarted."""
        for job in jobs:
            if job.name in self.functions and not self.takes_none:
                self.start(job)
                continue
            release = Release(job)
            if job.name not in self.functions:
                message = f"this worker has no function for jobs named {job.name}"
                log.warning("job %s is given back: %s", job.id, message)
                # Where there are more names than it can refuse, those that it forgets come again, but not at once.
                release = Release(job, 0 if self._source.refuse(job.name) else UNKNOWN_S, message=message)
            self._contact.report(release, takes_next=False)

    def start(self, job: Job, *, renews: bool = True, report: Callable[[Ending], None] | None = None) -> None:
        """Run `job`. How it ended goes to `report`, by default to the source. Without `renews` the attempt is given
        up when its lease has run out."""
        function = self.functions.get(job.name)
        loop = asyncio.get_running_loop()
        notes = Notebook(lambda: loop.call_soon_threadsafe(self._contact.beats.said))
        running = Running(job, renews, time.monotonic() + job.timeout, notes)
        running.task = asyncio.create_task(self._attend(running, function, report))
        self._contact.running[job.held] = running
        # Cancelled before it began, it would never take itself off the list.
        running.task.add_done_callback(lambda _task: self._gone(job.held))
        if job.max_runtime is not None:  # which nobody extends: another attempt begins then
            timer = loop.call_later(job.max_runtime, self._passed, job.held)
            running.task.add_done_callback(lambda _task: timer.cancel())
        self._contact.beats.started(running)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, or the worker is asked to stop; then finish what runs within
        `drain_timeout_s` and give the rest back."""
        self._contact.start()
        listening = asyncio.create_task(lasting("listening", partial(self._source.listen, self._told)))
        fetching = asyncio.create_task(lasting("fetching", self._fetch_loop)) if self._fetches else None
        stops = [asyncio.create_task(event.wait()) for event in (stop, self._asked_to_stop)]
        try:
            await asyncio.wait(stops, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.draining.set()
            await end([*stops, fetching], SAY_S)
            await self._drain()
            await end([listening], SAY_S)
            await self._contact.close()
            self._threads.stop()

    # -- one job ----------------------------------------------------------------------------------

    async def _attend(
        self, running: Running, function: Function | None, report: Callable[[Ending], None] | None
    ) -> None:
        try:
            async with asyncio.timeout(None if running.renews else running.job.timeout) as limit:
                ending = await self._attempt(running, function)
        except TimeoutError:
            assert limit.expired()
            running.notes.end("it ran for its timeout")
            log.warning("job %s (%s) ran out of its time", running.job.id, running.job.name)
            return
        finally:
            self._gone(running.job.held)
        if report is not None:
            report(ending)
            return
        # When every slot is taken nobody else fetches: the report of this one asks for the next job as well.
        self._contact.report(ending, takes_next=self._is_full and not self.takes_none)

    def _gone(self, key: Key) -> None:
        self._contact.running.pop(key, None)
        self._room_came.set()

    async def _attempt(self, running: Running, function: Function | None) -> Ending:
        with tracing.running(running.job) as attempt:
            ending = await self._ending_of(running, function)
            attempt.ended(getattr(ending, "spec", None))
        if running.notes.is_used:
            await self._contact.beats.tell_rest(running, ending)
        return ending

    async def _ending_of(self, running: Running, function: Function | None) -> Ending:
        """Whatever the function raises is how this attempt ends; the worker and other jobs go on."""
        job = running.job
        running.notes.open(job)
        if function is None:
            return endings.failed(job, f"this worker has no function for jobs named {job.name}")
        try:
            try:
                result = await self._called(function, job)
                await _uncancelled(running)
                return endings.succeeded(job, result)
            except JobReleased as release:
                return endings.released(job, release)
        except BaseException as error:
            if _is_stopped(running, error):
                raise asyncio.CancelledError from error
            if running.notes.over == STOPS:  # it is given back, and no retry is spent: it failed since it was cancelled
                log.warning("job %s (%s) failed as its worker stopped: %s", job.id, job.name, summary(error))
                raise asyncio.CancelledError from error
            await _uncancelled(running)
            return endings.raised(job, error, getattr(function, "jq_retries", None))

    async def _called(self, function: Function, job: Job) -> Any:
        pid = os.getpid()
        try:
            result = await self._result_of(function, job)
        except ResumeAfter as resume:
            result = resume
        except BaseException as error:
            end_if_forked(pid, error)
            raise
        end_if_forked(pid)
        return result

    async def _result_of(self, function: Function, job: Job) -> Any:
        if getattr(function, "jq_takes_bytes", False):
            return await function(job.argument)
        try:
            argument: Any = msgpack.unpackb(job.argument, strict_map_key=False)
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise JobFailed(f"the argument cannot be read: {error}", retry=False) from error
        if inspect.iscoroutinefunction(function):  # which costs as much as all else here
            return await endings.returned(await function(argument))
        return await endings.returned(await self._threads.run(function, argument))

    async def _fetch_loop(self) -> None:
        failures = 0
        while True:
            if self.free <= 0:
                self._is_full = True
                await self._until(lambda: self.free > 0)
                self._is_full = False
            if not self._awake.is_set():
                await self._awake.wait()
                continue
            self._fetching = asyncio.ensure_future(self._source.fetch(min(self.free, MOST_AT_ONCE)))
            try:
                jobs = await self._fetching
                failures = 0
                self.trouble.over("get jobs")
            except asyncio.CancelledError:
                if self._fetching.done() and not self._fetching.cancelled() and not self._fetching.exception():
                    self.take(self._fetching.result())
                # Only this fetch was cancelled when the worker was asked to be quiet.
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise
            except JQError as error:
                if isinstance(error, NotFound) and await self._source.register_again():
                    continue
                self.trouble.met("get jobs", error)
                await asyncio.sleep(backoff_s(failures))
                failures += 1
            else:
                self.take(jobs)

    def answered(self, outcome: Outcome, state: str) -> None:
        """What became of a report."""
        if state.isupper():
            log.warning("job %s attempt %d: %s", outcome.job.id, outcome.job.attempt, state)
        if self._on_outcome is not None:
            self._on_outcome(outcome, state)

    async def give_back(self, release: Release) -> list[Outcome]:
        """Release until it is heard; what is refused becomes a failure, which is left to report."""
        return await self._contact.give_back(release)

    def _passed(self, key: Key) -> None:
        self.stop_job(key, "it ran for max_runtime")
        self._contact.beats.passed(key)

    def stop_job(self, key: Key, why: str) -> None:
        """Give an attempt up that runs here."""
        running = self._contact.running.get(key)
        if running is not None:
            log.warning("job %s attempt %d: %s, stopping it", running.job.id, running.job.attempt, why)
            running.stop(why)

    # -- what the worker is told -------------------------------------------------------------------

    @property
    def is_quiet(self) -> bool:
        """Whether it was asked to take no more jobs."""
        return not self._awake.is_set()

    @property
    def takes_none(self) -> bool:
        """Whether it wants no more jobs."""
        return self.draining.is_set() or self.is_quiet

    def _told(self, message: str) -> None:
        """What came over the worker's channel; "" for a gap."""
        word, *key = message.split(" ")
        if word in ("cancelled", "kicked"):
            # Its token is nobody's business but ours: the attempt's number stands for it.
            for running in self.running:
                if key == [running.job.id, str(running.job.attempt)]:
                    self.stop_job(running.job.held, "CANCELLED" if word == "cancelled" else "LOST")
        elif word in ("quiet", "stop", "resume"):
            self.asked("" if word == "resume" else word)
        elif not word:
            self._contact.beats.look()

    def asked(self, request: str) -> None:
        """What is asked of the worker: `quiet`, `stop`, or "" for neither."""
        if request == "stop":
            self._asked_to_stop.set()
        if request and not self.is_quiet:
            log.warning("asked to %s", "stop" if request == "stop" else "be quiet")
            self._awake.clear()
            if self._fetching is not None:
                # Who is quiet gets nothing, and what came meanwhile would not end the wait afterwards.
                self._fetching.cancel()
        elif not request and self.is_quiet:
            log.warning("asked to resume")
            self._awake.set()

    # -- stopping ---------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Wait until nothing runs and all is said; what still runs when the time is up is given back."""
        try:
            async with asyncio.timeout(self._drain_timeout_s):
                await self.idle()
        except TimeoutError:
            await self._leave()

    async def _leave(self) -> None:
        if left := self.running:
            for running in left:
                running.stop(STOPS)
            await asyncio.wait([running.task for running in left], timeout=END_S)
            # Threads and processes go on until they are ended: limits of their jobs count them that long.
            held = [running.job.held for running in left]
            await self._say(self._source.release(held, delay=HANDOVER_S, hold={"*": HANDOVER_S}))
        await self._say(self._until(lambda: not self._contact.unreported))

    async def _until(self, is_over: Callable[[], bool]) -> None:
        while not is_over():
            self._room_came.clear()
            await self._room_came.wait()

    async def _say(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(SAY_S):
                await work
        except (TimeoutError, JQError) as error:
            log.warning("what became of some jobs could not be said, their leases will run out: %r", error)


def _is_stopped(running: Running, error: BaseException) -> bool:
    """Whether this is the end of an attempt that the worker gave up. All else a job has raised itself: a task or future
    of its own that was cancelled, for example."""
    if not issubclass(type(error), asyncio.CancelledError | JobStopped):
        return False
    task = asyncio.current_task()
    timed_out = not running.renews and task is not None and task.cancelling() > 0
    return running.notes.over is not None or timed_out


async def _uncancelled(running: Running) -> None:
    """A job that cancelled the task it ran in has ended; what the worker does next in it goes on."""
    task = asyncio.current_task()
    if task is None or not task.cancelling() or running.notes.over is not None:
        return
    while task.cancelling():
        task.uncancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
    if running.notes.over is not None:  # the worker cancelled it meanwhile
        raise asyncio.CancelledError


def queues_for(functions: Mapping[str, Function], queues: Iterable[str] | None) -> list[str]:
    """The queues to work on: those given, or those that jobs of these names wait in by default."""
    return list(queues) if queues else sorted(functions)
