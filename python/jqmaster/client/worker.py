"""A worker for the jobs of a `JQ`: arguments, middleware, retry rules, threads and processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

import msgpack

from jqmaster.client.calling import Serializer
from jqmaster.client.declared import bring
from jqmaster.client.registry import Registry
from jqmaster.client.target import Target
from jqmaster.client.task import Call, Task
from jqmaster.connection.wake import end
from jqmaster.engine.options import several
from jqmaster.engine.replies import Job
from jqmaster.engine.secret import masters_of
from jqmaster.worker.ending import FollowUp, Move, Packed, returned
from jqmaster.worker.failure import JobFailed, text_of
from jqmaster.worker.notes import current_job, in_a_loop, notebook_of
from jqmaster.worker.run import WorkOptions, run, work
from jqmaster.worker.sources import default_name
from jqmaster.worker.threads import Threads

if TYPE_CHECKING:
    from jqmaster.worker.process_pool import ProcessPool

log = logging.getLogger("jqmaster.jobs")

APART = ("threads", "processes")
"""Kinds of slots that jobs may have apart from the others, of `concurrency`."""


class Runner:
    """Calls functions for jobs, in one process, with so many threads and processes. `in_place`: plain functions run
    in the caller's thread. `target`: the object is for it while the worker is alive."""

    def __init__(
        self,
        jq: Registry,
        threads: int,
        processes: int,
        *,
        in_place: bool = False,
        renewal: tuple[int | None, int | None] = (None, None),
        target: Target | None = None,
    ) -> None:
        self._target = target
        self._jq = jq
        self._in_place = in_place
        self.threads = Threads(threads)
        self._most_processes = processes
        self._renewal = renewal
        self._processes: ProcessPool | None = None

    def functions(self) -> dict[str, Callable[[Any], Any]]:
        """For `Worker`: by names of jobs, what is called with their packed arguments."""
        return {name: self._function(task) for name, task in self._jq.tasks.items()}

    async def call(self, task: Task[..., Any], job: Job) -> Any:
        """Run one attempt; its result. Raises what the function, the serializer and middleware raise."""
        try:
            assert task.signature is not None
            args, kwargs = task.signature.decode(self._jq.serializer.loads(job.argument))
        except (TypeError, ValueError) as error:
            message = f"the argument does not fit {task.name}{task.signature}: {text_of(error)}"
            raise JobFailed(message, retry=False) from error
        if not self._jq.middlewares:
            return await self._invoke(task, job, args, kwargs)
        call: Callable[[], Awaitable[Any]] = partial(self._invoke, task, job, args, kwargs)
        for middleware in reversed(self._jq.middlewares):
            call = partial(middleware, job, call)
        return await call()

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """What surrounds a worker: what the program declares, lifespans and hooks; the end of threads and processes."""
        tried = asyncio.Event()
        async with AsyncExitStack() as stack:
            if self._target is not None:
                stack.enter_context(self._jq.connected(self._target))
            stack.callback(self._end)
            bringing = asyncio.create_task(bring(self._jq, tried), name="declared")
            stack.push_async_callback(end, [bringing])
            await tried.wait()
            if bringing.done():
                bringing.result()
            await stack.enter_async_context(self._jq.surroundings())
            yield

    # -- parts ------------------------------------------------------------------------------------

    def _function(self, task: Task[..., Any]) -> Callable[[bytes], Awaitable[Any]]:
        serializer = self._jq.serializer

        async def attempt(_argument: bytes) -> Any:
            job = current_job.get()
            if (notebook := notebook_of()) is not None:
                notebook.dumps = serializer.dumps
            result = await self.call(task, job)
            try:
                result = task.sent(result)
                if isinstance(result, FollowUp | Move):
                    return plain(result, serializer)
                return Packed(serializer.dumps(result))
            except (TypeError, ValueError, OverflowError) as error:
                message = f"the result of {task.name} cannot be packed: {text_of(error)}"
                raise JobFailed(message, retry=False) from error

        attempt.__dict__["jq_takes_bytes"] = True  # which only a coroutine function may say
        attempt.__dict__["jq_retries"] = task.rules.retries
        return attempt

    async def _invoke(self, task: Task[..., Any], job: Job, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        function = task.function
        assert function is not None
        if task.is_async:
            result = await function(*args, **kwargs)
        elif self._in_place:
            result = function(*args, **kwargs)
            if isinstance(result, Coroutine) and not in_a_loop():
                return asyncio.run(returned(result))
        elif task.rules.process:
            if self._processes is None:
                from jqmaster.worker.process_pool import ProcessPool  # multiprocessing takes memory

                self._processes = ProcessPool(self._most_processes, *self._renewal)
            return await self._processes.run(function, job, args, kwargs, self._jq.target)
        else:
            result = await self.threads.run(function, *args, **kwargs)
        return None if result is None else await returned(result)

    def _end(self) -> None:
        self.threads.stop()
        if self._processes is not None:
            self._processes.stop()


class AppWorker:
    """See `JQ.worker`."""

    def __init__(self, jq: Registry, queues: Sequence[str] | None, **options: Any) -> None:
        self._jq = jq
        self._queues = None if queues is None else list(several(queues, "queues"))
        self._given = options

    def options(self) -> WorkOptions:
        """For `jqmaster.worker.run`. Raises ValueError when there is no job to work on, or one has an annotation that
        names what is not there; and as `masters_of`."""
        if not self._jq.tasks:
            raise ValueError("there are no jobs: decorate functions with @jq.job, and import their modules")
        for task in self._jq.tasks.values():
            task.check_types()
        options = {**self._given}
        renewal = options.pop("process_jobs", None), options.pop("process_memory", None)
        apart = {kind: most for kind in APART if (most := options.pop(kind, None)) is not None}
        most = [apart.get(kind, options.get("concurrency", 8)) for kind in APART]
        named, key = options.get("namespace"), options.get("key")
        options["namespace"] = named or self._jq.namespace
        if options.get("form", "auto") == "auto":
            options["form"] = self._jq.target.form
        options["recreate"] = options.get("recreate") or self._jq.target.recreate
        if not options.get("masters") and options.get("redis_url") is None:
            if self._jq.target.is_redis:
                options["redis_url"] = self._jq.url
            else:
                options["masters"] = self._jq.target.masters
        if options.get("masters"):
            masters_of(",".join(options["masters"]), named)
            options["key"] = options.get("key") or self._jq.target.key_of_master()
        runner = Runner(self._jq, *most, renewal=renewal, target=self._target(options, named, key))
        queues = _queues_apart(self._jq, self._queues, apart)
        if len(queues) > 1 and options.get("push"):
            raise ValueError("slots apart for threads or processes are for workers that pull")
        name = options.pop("name", None) or default_name()
        made = []
        for kind, own in queues.items():
            slots = {"queues": own, "name": f"{name}.{kind}" if kind else name}
            if kind:
                slots["concurrency"] = apart[kind]
            threads = runner.threads if kind == ("threads" if "threads" in apart else "") else None
            made.append(WorkOptions(runner.functions(), threads, **options | slots))
        return replace(made[0], around=runner.alive, beside=made[1:])

    def _target(self, options: Mapping[str, Any], named: str | None, key: str | None) -> Target:
        """Where the object's own calls go while the worker works: to where its jobs come from."""
        own, url = self._jq.target, options.get("redis_url") or ",".join(options["masters"])
        changed: dict[str, Any] = {name: options[name] for name in ("namespace", "form", "recreate")}
        if url != own.url:
            changed["names_namespace"] = named is not None
        if key is not None:
            changed |= {"key": key, "key_file": None}
        return replace(own, url=url, **changed)

    def run(self) -> int:
        """Work until SIGTERM or SIGINT, then finish what runs; the process's exit code."""
        return run(self.options())

    async def serve(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set. Raises when the worker cannot listen, or is refused."""
        await work(self.options(), stop)


def plain(result: Any, serializer: Serializer) -> Any:
    """A result, or what follows, as MessagePack's own types. Raises what `serializer` raises."""
    if isinstance(result, FollowUp):
        jobs = list(result.jobs)
        followers = [job.follower(jobs) if isinstance(job, Call) else job for job in jobs]
        return FollowUp(plain(result.result, serializer), followers)
    if isinstance(result, Move):
        return replace(result, argument=plain(result.argument, serializer))
    return msgpack.unpackb(serializer.dumps(result), strict_map_key=False)


def _queues_apart(jq: Registry, wanted: Sequence[str] | None, apart: Collection[str]) -> dict[str, list[str]]:
    """The queues whose jobs run in slots of a kind of their own, and under "" those of all others. Raises ValueError
    for a queue with jobs of several: who asks it for one that can start may get another."""
    by_kind: dict[str, list[str]] = {}
    for queue in wanted or queues_of(jq):
        tasks = [task for task in jq.tasks.values() if fnmatchcase(task.queue, queue)]
        kinds = sorted({kind if (kind := _kind(task)) in apart else "" for task in tasks}) or [""]
        if len(kinds) > 1:
            names = ", ".join(kind or "others" for kind in kinds)
            raise ValueError(f"queue {queue} has jobs for several kinds of slots ({names}): give each its queues")
        by_kind.setdefault(kinds[0], []).append(queue)
    return by_kind


def _kind(task: Task[..., Any]) -> str:
    return "" if task.is_async else "processes" if task.rules.process else "threads"


def queues_of(jq: Registry) -> list[str]:
    """Where the jobs of an object wait, unless they are told otherwise when they are enqueued."""
    return sorted({task.queue for task in jq.tasks.values()})
