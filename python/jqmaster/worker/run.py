"""A worker as a process: puts the parts together and sees to signals."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from jqmaster.connection.url import without_password
from jqmaster.connection.wake import backoff_s, end
from jqmaster.engine.scripts import Form
from jqmaster.engine.secret import check_master, key_of
from jqmaster.errors import JQError, Unavailable, brought_by
from jqmaster.server import logs
from jqmaster.server.signing import new_secret
from jqmaster.worker.ending import Outcome
from jqmaster.worker.sources import EngineSource, RedisSource
from jqmaster.worker.threads import Threads
from jqmaster.worker.trouble import lasting
from jqmaster.worker.watchdog import Watchdog
from jqmaster.worker.worker import STOP_TIMEOUT_S, Function, Worker, queues_for

if TYPE_CHECKING:
    from jqmaster.worker.push import PushHost

log = logging.getLogger("jqmaster.worker")
_ANY_ADDRESS = ("", "0.0.0.0", "::")
_ANNOUNCED_EVERY_S = 60.0  # a third of what the engine waits for
_MOST_NAMES = 100  # of jobs, and ids, that the engine takes
_MOST_QUEUES = 100  # that a pick can name
_MOST_JOBS = 1000  # that a worker can have at a time
_PATCHERS = {
    "gevent": ("gevent.monkey", "is_module_patched", "threading"),
    "eventlet": ("eventlet.patcher", "is_monkey_patched", "thread"),
}


@dataclass
class WorkOptions:
    """What a worker process can be told: `masters` or `redis_url`, and `push` or not."""

    functions: Mapping[str, Function | Callable[[Any], Any]]
    threads: Threads | None = None  # in which plain functions run; default: `concurrency` of its own
    masters: Sequence[str] = field(default_factory=list)
    key: str | None = field(default=None, repr=False)  # with masters: default as the environment says
    redis_url: str | None = None
    namespace: str = "{jq}"
    form: Form = "auto"  # with redis_url: how operations are called
    recreate: bool = False  # with redis_url: set a namespace up again that has vanished
    push: bool = False
    register: bool = False  # without push: be listed, and hear when asked to be quiet or to stop
    queues: Sequence[str] | None = None
    order: str = "priority"
    concurrency: int = 8
    host: str = "127.0.0.1"
    port: int = 0
    advertise: str | None = None  # with push: the URL to register, where it is not that of host and port
    push_secrets: Sequence[str] = ()  # with push: what is signed with one of them is run; default, a random one
    name: str | None = None
    drain_timeout_s: float = STOP_TIMEOUT_S
    on_outcome: Callable[[Outcome, str], None] | None = None
    around: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext  # entered while the worker works

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= _MOST_JOBS:
            raise ValueError(f"concurrency: expected 1 to {_MOST_JOBS}, got {self.concurrency}; start more workers")
        if (count := len(queues_for(self.functions, self.queues))) > _MOST_QUEUES:
            raise ValueError(
                f"queues: a worker takes jobs from at most {_MOST_QUEUES} queues, got {count}. Each kind of job waits "
                'in a queue of its own unless it is told another: give them one, as by JQ(queue="default"); '
                "or name queues or patterns, such as --queues 'mail.*,report.*'"
            )
        if self.push and not self.advertise and self.host in _ANY_ADDRESS:
            raise ValueError(
                f"{self.host} is no address to push to: give the URL by which servers reach it (--advertise)"
            )


def run(options: WorkOptions, *, ends_process: bool = False) -> int:
    """Work until SIGTERM or SIGINT: drain, give the rest back, return the exit code. A second signal ends the process
    at once. So does a function that still runs when its job was given back, as the job may begin elsewhere. With
    `ends_process` the process has nothing else to do, and ends in time whatever is left in it."""
    if (library := _patched_by()) is not None:
        problem = (
            f"{library} has patched threads, in which a worker runs plain functions: they would never begin. Patch "
        )
        logs.say(log, f"{problem}in the web application alone, and not in modules that workers import", is_error=True)
        return 1
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        stop = asyncio.Event()
        watch = Watchdog(runner.get_loop(), stop.set, options.drain_timeout_s)
        code = watch.run(_run(options, stop, watch))
        if watch.worker is not None and watch.worker.outlived:
            logging.shutdown()
            sys.stdout.flush()
            os._exit(code)
    if ends_process:
        watch.ends(code)
    else:
        watch.over()
    return code


def _patched_by() -> str | None:
    """Which library has put greenlets, all in one thread, where others have threads."""
    for library, (module, function, what) in _PATCHERS.items():
        if module in sys.modules and getattr(sys.modules[module], function)(what):
            return library
    return None


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # asyncio's own will do
        return None
    return uvloop.new_event_loop


async def _run(options: WorkOptions, stop: asyncio.Event, watch: Watchdog) -> int:
    try:
        await work(options, stop, watch)
    except (JQError, OSError) as error:
        logs.say(log, str(error), is_error=True)
        return 1
    return 0


async def work(options: WorkOptions, stop: asyncio.Event, watch: Watchdog | None = None) -> None:
    """Work until `stop` is set. Raises when the worker cannot listen, or is refused."""
    async with options.around():
        source = _source(options)
        worker = Worker(
            options.functions,
            source,
            concurrency=options.concurrency,
            fetches=not options.push,
            drain_timeout_s=options.drain_timeout_s,
            on_outcome=partial(_note, options.on_outcome),
            threads=options.threads,
        )
        if watch is not None:
            watch.worker, watch.another = worker, partial(_source, options)
        host: PushHost | None = None
        try:
            said = "is ready"
            if options.push:
                with brought_by("worker", "a worker that jobs are pushed to"):
                    from jqmaster.worker.push import PushHost
                secrets = list(options.push_secrets) or [new_secret()]
                host = PushHost(worker, secrets, host=options.host, port=options.port)
                listens = await host.start()
                source.about |= {"url": options.advertise or listens, "secrets": secrets}
                said = f"listens on {listens}" + (f" as {options.advertise}" if options.advertise else "")
            if source.is_registered and not await _registered(source, stop):
                return
            logs.say(log, f"worker {source.full_name} {said}")
            announcing = asyncio.create_task(lasting("announcing", partial(_announce, source, worker)))
            try:
                await worker.run(stop)
            finally:
                await end([announcing])
            logs.say(log, f"worker {source.full_name} has stopped")
        finally:
            await source.stop()
            if host is not None:
                await host.stop()


def _source(options: WorkOptions) -> EngineSource:
    """Raises ValueError, OSError."""
    from jqmaster import __version__

    about = {
        "max_jobs": options.concurrency,
        "host": socket.gethostname() or None,
        "pid": os.getpid(),
        "version": f"jqmaster {__version__}",
        "knows": sorted(options.functions)[:_MOST_NAMES],
    }
    queues = queues_for(options.functions, options.queues)
    wish: dict[str, Any] = {"order": options.order, "name": options.name, "about": about}
    wish["is_registered"] = options.push or options.register
    if options.redis_url is not None:
        try:
            how: dict[str, Any] = {"form": options.form, "recreate": options.recreate}
            return RedisSource(options.redis_url, options.namespace, queues, **wish, **how)
        except ValueError as error:
            raise ValueError(f"{without_password(options.redis_url)}: {error}") from None
    from jqmaster.worker.http_source import HttpSource

    for url in options.masters:
        check_master(url)
    return HttpSource(options.masters, queues, key=key_of(options.key), **wish)


async def _registered(source: EngineSource, stop: asyncio.Event) -> bool:
    """Register, and wait for a master that is not there yet. False when told to stop meanwhile."""
    failures = 0
    while not stop.is_set():
        try:
            await source.register()
            return True
        except Unavailable as error:
            if not failures:
                logs.say(log, f"waiting for the other side: {error}", is_error=True)
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


def _note(also: Callable[[Outcome, str], None] | None, outcome: Outcome, state: str) -> None:
    """Log what is only known when a failure was reported: that there is no further attempt."""
    if state == "error":
        job, message = outcome.job, outcome.spec.get("message")
        log.error("job %s (%s) failed for good in attempt %d: %s", job.id, job.name, job.attempt, message)
    if also is not None:
        also(outcome, state)
