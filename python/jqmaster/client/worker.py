"""A worker: runs the jobs of a `JQ`, as a process or in a program's event loop, with what surrounds them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from jqmaster import __version__
from jqmaster.client.handle import batched
from jqmaster.client.immediate import Memory
from jqmaster.client.registry import Registry
from jqmaster.client.task import Task
from jqmaster.connection.wake import backoff_s, end
from jqmaster.engine.engine import Operations
from jqmaster.engine.replies import Job
from jqmaster.errors import Invalid, JQError, Unavailable, brought_by
from jqmaster.server import logs
from jqmaster.server.signing import new_secret
from jqmaster.worker.attempts import Attempts
from jqmaster.worker.ending import Outcome
from jqmaster.worker.log import log
from jqmaster.worker.notes import in_a_loop
from jqmaster.worker.signals import Signals
from jqmaster.worker.sources import AWAY, EngineSource, HttpSource, RedisSource
from jqmaster.worker.threads import Threads
from jqmaster.worker.worker import STOP_TIMEOUT_S, Function, Worker, lasting

if TYPE_CHECKING:
    from jqmaster.worker.processes import ProcessPool

_ANY_ADDRESS = ("", "0.0.0.0", "::")
_ANNOUNCED_EVERY_S = 60.0  # a third of what the engine waits for
_MOST_NAMES = 100  # of jobs, and ids, that the engine takes
_MOST_QUEUES = 100  # that a pick can name
_MOST_JOBS = 1000  # that a worker can have at a time
_LOOK_S = 0.2  # of a burst, while jobs run


@dataclass
class AppWorker:
    """See `JQ.worker`. Raises ValueError when there is no job to work on, or one has an annotation that names what is
    not there, and for options that cannot be."""

    jq: Registry
    queues: Sequence[str] | None = None
    concurrency: int = 8
    process_jobs: int | None = None
    push: bool = False
    register: bool = False  # without push: be listed, and hear when asked to be quiet or to stop
    host: str = "127.0.0.1"
    port: int = 0
    advertise: str | None = None  # with push: the URL to register, where it is not that of host and port
    push_secrets: Sequence[str] = ()  # with push: what is signed with one of them is run; default, a random one
    order: str = "priority"
    name: str | None = None
    drain_timeout_s: float = STOP_TIMEOUT_S
    on_outcome: Callable[[Outcome, str], object] = lambda *_: None  # is told every answer to a report

    def __post_init__(self) -> None:
        if not self.jq.tasks:
            raise ValueError(
                "there are no jobs: decorate functions with @jq.job, and import their modules; "
                "in tests, jq_app of pytest's settings names the program's JQ"
            )
        tasks = self.jq.tasks.values()
        for task in tasks:
            try:
                _ = task.result_converter
            except TypeError as error:  # an annotation still names what is not there
                raise ValueError(f"job {task.name}: {error}") from None
        if isinstance(self.queues, str):
            raise TypeError(f"queues: expected a list, such as [{self.queues!r}]")
        self.queues = list(self.queues) if self.queues else sorted({task.queue for task in tasks})
        if not 1 <= self.concurrency <= _MOST_JOBS:
            raise ValueError(f"concurrency: expected 1 to {_MOST_JOBS}, got {self.concurrency}; start more workers")
        if len(self.queues) > _MOST_QUEUES:
            raise ValueError(
                f"a worker takes jobs from at most {_MOST_QUEUES} queues, got {len(self.queues)}, one for each kind: "
                "give them one, as by JQ(queue=\"default\"), or name patterns, such as --queues 'mail.*,report.*'"
            )
        if self.push and not self.advertise and self.host in _ANY_ADDRESS:
            raise ValueError(
                f"{self.host} is no address to push to: give the URL by which servers reach it (--advertise)"
            )
        self.source = self._source()
        self.threads = Threads(self.concurrency)
        self._processes: ProcessPool | None = None
        self._has_served = False
        self._signals = Signals(self.drain_timeout_s)

    def run(self, *, ends_process: bool = False) -> int:
        """Work until SIGTERM or SIGINT: drain, give the rest back, return the exit code. A second signal ends the
        process at once. So does a function that still runs when its job was given back, as the job may begin elsewhere.
        With `ends_process` the process has nothing else to do, and ends in time whatever is left in it."""
        if in_a_loop() or threading.current_thread() is not threading.main_thread():
            raise RuntimeError("run() takes over the process: call it in the main thread, with no event loop running")
        gevent = sys.modules.get("gevent.monkey")
        if gevent is not None and gevent.is_module_patched("threading"):
            problem = "gevent has patched threads, in which a worker runs plain functions: they would never begin"
            logs.say(log, f"{problem}. Patch in no module that workers import", is_error=True)
            return 1
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
        with suppress(ImportError):  # asyncio's own will do
            from uvloop import new_event_loop as loop_factory
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            stop, code, is_outlived = asyncio.Event(), 0, False
            try:
                is_outlived = self._signals.run(runner.get_loop(), self.serve(stop), stop.set)
            except (JQError, OSError) as error:
                logs.say(log, str(error), is_error=True)
                code = 1
            if is_outlived:
                logging.shutdown()
                with suppress(AttributeError, OSError, ValueError):  # there is none, or a job has closed it
                    sys.stdout.flush()
                os._exit(code)
        if ends_process:
            self._signals.ends(code)
        else:
            self._signals.over()
        return code

    async def serve(self, stop: asyncio.Event) -> bool:
        """Work until `stop` is set; whether functions in threads run on then. Raises when the worker cannot listen, or
        is refused, and RuntimeError when it has worked already."""
        if self._has_served:
            raise RuntimeError("this worker has stopped: make another")
        self._has_served = True
        async with self.surroundings(), AsyncExitStack() as stack:
            source, signals = self.source, self._signals
            signals.note()
            worker = self.worker(
                source, fetches=not self.push, drain_timeout_s=self.drain_timeout_s, on_outcome=self.on_outcome,
                on_stop=signals.begin_end,
            )  # fmt: skip
            said = "is ready"
            if self.push:
                with brought_by("worker", "a worker that jobs are pushed to"):
                    from jqmaster.worker.push import PushHost
                secrets = list(self.push_secrets) or [new_secret()]
                host = PushHost(worker, secrets, host=self.host, port=self.port)
                listens = await host.start()
                stack.push_async_callback(host.stop)
                source.about |= {"url": self.advertise or listens, "secrets": secrets}
                said = f"listens on {listens}" + (f" as {self.advertise}" if self.advertise else "")
            stack.push_async_callback(source.stop)
            if source.is_registered and not await _registered(source, stop):
                return False
            logs.say(log, f"worker {source.full_name} {said}")
            announce = partial(_announce, source, worker)
            announcing = asyncio.create_task(lasting("announcing", announce, lambda: worker.works))
            try:
                await worker.run(stop, is_alone=bool(signals.handlers))
            finally:
                await end([announcing])
            logs.say(log, f"worker {source.full_name} has stopped")
        return worker.outlived

    def worker(self, source: EngineSource, kind: type[Worker] = Worker, **options: Any) -> Worker:
        """What runs the functions for jobs of a source. `options`: of `Worker`."""
        tasks = self.jq.tasks.items()
        functions = {name: Function(partial(self._attempt, task), task.retries) for name, task in tasks}
        return kind(functions, source, self.threads, concurrency=self.concurrency, **options)

    @asynccontextmanager
    async def surroundings(self) -> AsyncIterator[None]:
        """What surrounds a worker: what the program declares, and lifespans; the end of threads and processes."""
        tried = asyncio.Event()
        async with AsyncExitStack() as stack:
            stack.callback(lambda: self._processes.stop() if self._processes else None)
            stack.callback(self.threads.stop)
            bringing = asyncio.create_task(_bring(self.jq, tried), name="declared")
            bringing.add_done_callback(lambda _: tried.set())
            stack.push_async_callback(end, [bringing])
            await tried.wait()
            if bringing.done():
                bringing.result()
            await stack.enter_async_context(self.jq.surroundings())
            yield

    async def _attempt(self, task: Task[..., Any], job: Job) -> Any:
        if not task.process:
            try:
                return await task.attempt(job, self.threads.run)
            finally:
                self._signals.hold()
        if self._processes is None:
            from jqmaster.worker.processes import ProcessPool

            self._processes = ProcessPool(self.threads, self.concurrency, self.process_jobs)
        assert task.function is not None
        return await self._processes.run(task.function.__module__, job, self.jq.target)

    def _source(self) -> EngineSource:
        about = {
            "max_jobs": self.concurrency,
            "host": socket.gethostname() or None,
            "pid": os.getpid(),
            "version": f"jqmaster {__version__}",
            "knows": sorted(self.jq.tasks)[:_MOST_NAMES],
        }
        is_registered, target = self.push or self.register, self.jq.target
        wish: dict[str, Any] = {"order": self.order, "name": self.name, "about": about, "is_registered": is_registered}
        queues = self.queues or ()
        if target.is_redis:
            return RedisSource(target.url, target.redis_namespace, queues, recreate=target.recreate, **wish)
        urls, key = target.masters()
        return HttpSource(urls, queues, key=key, **wish)


async def _registered(source: EngineSource, stop: asyncio.Event) -> bool:
    """Register, and wait for a master that is not there yet. False when told to stop meanwhile."""
    failures = 0
    while not stop.is_set():
        try:
            await source.register()
            return True
        except AWAY as error:
            if not failures:
                logs.say(log, f"waiting for the server: {error}", is_error=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(backoff_s(failures)):
                    await stop.wait()
            failures += 1
    return False


async def _announce(source: EngineSource, worker: Worker) -> None:
    """Have a worker listed that is not registered. It works as well without."""
    while not source.is_registered:
        try:
            await source.register([attempt.job.id for attempt in worker.running[:_MOST_NAMES]])
        except JQError as error:
            log.debug("not listed: %s", error)
        with suppress(TimeoutError):
            async with asyncio.timeout(_ANNOUNCED_EVERY_S):
                await source.has_refused.wait()


async def _bring(jq: Registry, tried: asyncio.Event) -> None:
    """Bring all that a program declares. Sets `tried` when the server cannot be reached: it gets the rest later, then.
    Raises ValueError for what cannot be, such as a cron expression that is none: a program with it must not start as if
    all were well."""
    # Limits first: a schedule's jobs may be due.
    for name, bring in [*jq.limits.items(), *jq.recurring.items()]:
        failures = 0
        while True:
            try:
                await bring()
                break
            except Unavailable as error:
                log.log(logging.DEBUG if failures else logging.WARNING, "%s comes later: %s", name, error)
                tried.set()
                await asyncio.sleep(backoff_s(failures))
                failures += 1
            except Exception as error:  # also what a serializer raises: the others are to be brought all the same
                if isinstance(error, Invalid | TypeError | ValueError) and not tried.is_set():
                    raise ValueError(f"{name}: {error}") from error
                log.error("%s is refused: %s", name, error)
                break


# -- until nothing is left to run: for tests, and for programs that are their own worker ------------------------------


async def aburst(
    jq: Registry,
    queues: Sequence[str] | None = None,
    *,
    concurrency: int = 8,
    delayed: bool = False,
    raises: bool = True,
) -> int:
    """See `JQ.burst`."""
    transport = await jq.link.open()
    if isinstance(transport, Memory):
        return 0  # jobs have run where they were enqueued
    app = AppWorker(jq, queues, concurrency)
    attempts: list[tuple[Outcome, str]] = []
    states = ("retrying", "scheduled") if delayed else ("retrying",)
    source = _BurstSource(jq, transport.engine, app.queues or (), states)
    worker = app.worker(source, on_outcome=lambda *attempt: attempts.append(attempt))
    source.attempts = worker.attempts
    try:
        async with app.surroundings():
            await worker.run(source.empty)
    finally:
        await source.stop()
    if source.problem is not None:
        raise source.problem
    failed = [_cause(outcome) for outcome, state in attempts if state == "error"]
    if failed and raises:
        raise failed[0] if len(failed) == 1 else ExceptionGroup(f"{len(failed)} jobs failed", failed)
    return len(attempts)


def _cause(outcome: Outcome) -> Exception:
    """What a function raised. What is no Exception would end more than the burst; what was raised in a process stays
    there."""
    error = outcome.raised
    if not isinstance(error, Exception):
        error = RuntimeError(outcome.spec.get("message", "failed"))
        error.__cause__ = outcome.raised
    error.add_note(f"in job {outcome.job.id} ({outcome.job.name}), attempt {outcome.job.attempt}")
    return error


class _BurstSource(EngineSource):
    """A source that waits for no jobs, and says when there are none."""

    attempts: Attempts

    def __init__(self, jq: Registry, engine: Operations, queues: Sequence[str], states: Sequence[str]) -> None:
        """`states`: of jobs that are not waited for."""
        super().__init__(engine, queues)
        self.empty = asyncio.Event()
        self.problem: Exception | None = None
        self._jq, self._states = jq, states

    async def fetch(self, count: int) -> list[Job]:
        try:
            while True:
                was_busy = not self.attempts.is_idle  # what ends meanwhile may leave more to run
                next_ms, jobs = await self._engine.pick(self.worker, count=count, **self._wish)
                if jobs or not next_ms:
                    return jobs
                if was_busy:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_S):
                            await self.attempts.until(lambda: self.attempts.is_idle)
                elif not await self._hurry():
                    break
        except Exception as error:
            self.problem = error
        self.empty.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def _hurry(self) -> bool:
        """Make jobs that wait for their time ready; whether there were any."""
        ids = [
            job["id"]
            async for job in self._jq.ajobs(brief=True, status=self._states)
            if any(fnmatchcase(job["queue"], wanted) for wanted in self._wish["queues"])
        ]
        change = self._engine.change
        return "queued" in await batched(lambda ids: change([({"id": one, "delay": 0}, b"") for one in ids]), ids)
