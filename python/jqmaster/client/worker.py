"""A worker for the jobs of a `JQ`: threads and processes, and what surrounds its jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from jqmaster.client.declared import bring
from jqmaster.client.registry import Registry
from jqmaster.client.target import Target
from jqmaster.client.task import Task
from jqmaster.connection.wake import end
from jqmaster.engine.options import several
from jqmaster.engine.replies import Job
from jqmaster.worker.run import WorkOptions, run, work
from jqmaster.worker.threads import Threads
from jqmaster.worker.worker import Function

if TYPE_CHECKING:
    from jqmaster.worker.process_pool import ProcessPool


class Runner:
    """Calls functions for jobs, in one process, with so many threads and processes. `target`: the object is for it
    while the worker is alive."""

    def __init__(self, jq: Registry, most: int, process_jobs: int | None = None, target: Target | None = None) -> None:
        self.threads = Threads(most)
        self._jq = jq
        self._most = most
        self._process_jobs = process_jobs
        self._target = target or jq.target
        self._processes: ProcessPool | None = None

    def functions(self) -> dict[str, Function]:
        """For `Worker`, by names of jobs."""
        return {
            name: Function(partial(self._attempt, task), task.rules.retries) for name, task in self._jq.tasks.items()
        }

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """What surrounds a worker: what the program declares, and lifespans; the end of threads and processes."""
        tried = asyncio.Event()
        async with AsyncExitStack() as stack:
            stack.enter_context(self._jq.connected(self._target))
            stack.callback(self._end)
            bringing = asyncio.create_task(bring(self._jq, tried), name="declared")
            stack.push_async_callback(end, [bringing])
            await tried.wait()
            if bringing.done():
                bringing.result()
            await stack.enter_async_context(self._jq.surroundings())
            yield

    async def _attempt(self, task: Task[..., Any], job: Job) -> Any:
        if not task.rules.process:
            return await task.attempt(job, self.threads.run)
        if self._processes is None:
            from jqmaster.worker.process_pool import ProcessPool

            self._processes = ProcessPool(self._most, self._process_jobs)
        assert task.function is not None
        return await self._processes.run(task.function.__module__, job, self._target)

    def _end(self) -> None:
        self.threads.stop()
        if self._processes is not None:
            self._processes.stop()


class AppWorker:
    """See `JQ.worker`."""

    def __init__(self, jq: Registry, queues: Sequence[str] | None, **options: Any) -> None:
        self._jq = jq
        self._queues = None if queues is None else list(several(queues, "queues"))
        self._options = options

    def options(self) -> WorkOptions:
        """For `jqmaster.worker.run`. Raises ValueError when there is no job to work on, or one has an annotation that
        names what is not there; and as `Target.masters`."""
        if not self._jq.tasks:
            raise ValueError("there are no jobs: decorate functions with @jq.job, and import their modules")
        for task in self._jq.tasks.values():
            task.check_types()
        options = {**self._options}
        target = _target(self._jq.target, options)
        options |= {"namespace": target.namespace, "form": target.form, "recreate": target.recreate}
        if target.is_redis:
            options["redis_url"] = target.url
        else:
            options |= {"masters": target.masters, "key": target.key_of_master()}
        runner = Runner(self._jq, options.get("concurrency", 8), options.pop("process_jobs", None), target)
        queues = self._queues or queues_of(self._jq)
        return WorkOptions(runner.functions(), runner.threads, queues=queues, around=runner.alive, **options)

    def run(self) -> int:
        """Work until SIGTERM or SIGINT, then finish what runs; the process's exit code."""
        return run(self.options())

    async def serve(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set. Raises when the worker cannot listen, or is refused."""
        await work(self.options(), stop)


def _target(own: Target, options: dict[str, Any]) -> Target:
    """Where a worker's jobs come from, and its object's own calls go meanwhile; what `options` say of that is taken out
    of them."""
    urls = options.pop("redis_url", None), ",".join(options.pop("masters", None) or ())
    url = urls[0] or urls[1] or own.url
    namespace, key = options.pop("namespace", None), options.pop("key", None)
    form = options.pop("form", "auto")
    changed: dict[str, Any] = {} if key is None else {"key": key, "key_file": None}
    if url != own.url:
        changed["names_namespace"] = namespace is not None
    return replace(
        own,
        url=url,
        namespace=namespace or own.namespace,
        form=own.form if form == "auto" else form,
        recreate=options.pop("recreate", False) or own.recreate,
        **changed,
    )


def queues_of(jq: Registry) -> list[str]:
    """Where the jobs of an object wait, unless they are told otherwise when they are enqueued."""
    return sorted({task.queue for task in jq.tasks.values()})
