"""What a program has of jobs: their kinds, how they are enqueued, all operations by their names, and the server they
are for."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, Unpack, cast, overload

from jqmaster.client.calling import MessagePack, Serializer
from jqmaster.client.flow import FlowMethods
from jqmaster.client.handle import Handle, batched, unpacked
from jqmaster.client.link import Link, Target, plain, plain_each
from jqmaster.client.operations import PlainOperations
from jqmaster.client.task import Call, Decorator, DefinedTask, Middleware, ScheduleOptions, Task, calls_of
from jqmaster.connection import url as redis_url
from jqmaster.engine import zones
from jqmaster.engine.calling import contract_of, given
from jqmaster.engine.engine import Operations
from jqmaster.engine.options import JobOptions, Limits, When, Where, known
from jqmaster.engine.replies import Document, Page
from jqmaster.worker.notes import current_job

Match = Mapping[str, Any] | Task[..., Any]
"""Which jobs: a map of conditions (docs/limits.md), or a task, which stands for its name."""
Bring = Callable[[], Coroutine[Any, Any, object]]
"""Brings a declaration to the server. Raises what the operation does, and what the serializer raises."""


class LimitOptions(Limits, total=False):
    """And the `id` of a declared one; default: the task's name."""

    id: str | None


R_co = TypeVar("R_co", covariant=True)
AnyTask = TypeVar("AnyTask", bound=Task[..., Any])
AnyMatch = TypeVar("AnyMatch", bound=Match)
Lifespan = Callable[[], AbstractAsyncContextManager[Any]]
MiddlewareT = TypeVar("MiddlewareT", bound=Middleware)

LOCAL = "http://127.0.0.1:8400"
BATCH = PAGE = 1000


class Registry(FlowMethods):
    """All of `JQ` but what runs jobs. Every method that asks has an async twin with an `a` before its name. All raise
    what `jqmaster.errors` has."""

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        recreate: bool | None = None,
        serializer: Serializer | None = None,
        key: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        actor: str | None = None,
        wait: float | None = None,
        **defaults: Unpack[JobOptions],
    ) -> None:
        self.target = Target(
            url or os.environ.get("JQ_URL") or LOCAL,
            namespace,
            os.environ.get("JQ_RECREATE") == "1" if recreate is None else recreate,
            actor, key, key_file, wait or float(os.environ.get("JQ_WAIT") or 0) or None,
        )  # fmt: skip
        self.serializer: Serializer = serializer or MessagePack()
        self.defaults: JobOptions = known(defaults, JobOptions, beside=Registry.__init__.__kwdefaults__ or ())
        self.tasks: dict[str, Task[..., Any]] = {}
        self.limits: dict[str, Bring] = {}
        self.recurring: dict[str, Bring] = {}
        self.middlewares: list[Middleware] = []
        self.lifespans: list[Lifespan] = []
        self.state: Any = None
        """In a worker: what the lifespan yielded."""
        self.link = Link(self.target.transport, self.serializer)

    def __repr__(self) -> str:
        return f"<JQ {redis_url.without_password(self.url)} {self.namespace}>"

    @property
    def url(self) -> str:
        """Of the Redis or the masters that it asks."""
        return self.target.url

    @property
    def namespace(self) -> str:
        """Of a Redis; a master has its own."""
        return self.target.redis_namespace

    def connect(self, target: Target) -> None:
        """Be for that server from now on."""
        if target != self.target:
            self.target, self.link = target, Link(target.transport, self.serializer)

    @contextmanager
    def using(self, url: str, namespace: str | None = None, link: Link | None = None) -> Iterator[None]:
        """Within it the object is that of another server: for tests. `link`: the way there."""
        before = self.target, self.link
        self.target = replace(self.target, url=url, namespace=namespace)
        self.link = link or Link(self.target.transport, self.serializer)
        try:
            yield
        finally:
            self.link.close()
            self.target, self.link = before

    # -- defining ---------------------------------------------------------------------------------

    @property
    def job(self) -> Decorator:
        """Decorator: make a function a kind of job, `@jq.job` or `@jq.job(queue="mail", max_retry=3)`.

        Raises ValueError when there is a job of this name already, TypeError for options that do not exist.
        """
        return cast(Decorator, self._job)

    def task(self, name: str, /, **chosen: Unpack[JobOptions]) -> Task[..., Any]:
        """A job whose function lives elsewhere, in any language: `jq.task("resize").enqueue(4)`."""
        return Task(self, None, name, chosen)

    def schedule(self, /, **when: Unpack[ScheduleOptions]) -> Callable[[AnyTask], AnyTask]:
        """Decorator above `@jq.job`: make the job again and again, `@jq.schedule(cron="0 3 * * *")`.

        Workers bring it to the server when they start; what an operator changed stays until the program declares
        something else. When it is taken out of the program, `unschedule` takes it out of the server. Raises TypeError
        or ValueError for a time, a zone or arguments that cannot be.
        """

        def declare(task: AnyTask) -> AnyTask:
            _add(self.recurring, "schedule", *_schedule_of(self, task, when))
            return task

        return declare

    @overload
    def limit(self, /, **limits: Unpack[LimitOptions]) -> Callable[[AnyTask], AnyTask]: ...
    @overload
    def limit(self, match: AnyMatch, /, **limits: Unpack[LimitOptions]) -> AnyMatch: ...

    def limit(self, match: Any = None, /, **limits: Unpack[LimitOptions]) -> Any:
        """Decorator above `@jq.job`: limit its jobs, `@jq.limit(by="argument.customer", concurrency=5)`. Or, for all
        jobs that match, `jq.limit({"name": "mail.*"}, id="mails", concurrency=5)`. `id`: default the job's name; all
        else as of `jq.operations.constrain`. Brought as schedules are; `unconstrain` takes it out of the server.
        Raises TypeError or ValueError for what cannot be."""
        if match is None:
            return lambda it: self.limit(it, **limits)
        _add(self.limits, "limit", *_limit_of(self, match, {**limits}))
        return match

    def middleware(self, function: MiddlewareT) -> MiddlewareT:
        """Decorator: `async def timing(job, call_next)` runs around every job, `await call_next()` inside. It
        gives the job's result. The one defined first is outermost."""
        self.middlewares.append(function)
        return function

    def lifespan(self, function: Callable[[], AsyncIterator[Any]]) -> Callable[[], AsyncIterator[Any]]:
        """Decorator: an async generator that yields once, what is in `jq.state` while a worker runs."""
        self.lifespans.append(asynccontextmanager(function))
        return function

    @asynccontextmanager
    async def surroundings(self) -> AsyncIterator[None]:
        """What a worker's jobs find around them: lifespans, entered and left."""
        async with AsyncExitStack() as stack:
            for lifespan in self.lifespans:
                self.state = await stack.enter_async_context(lifespan())
            yield

    # -- enqueueing -------------------------------------------------------------------------------

    def new_job(self, name: str, argument: Any = None, **chosen: Unpack[JobOptions]) -> Call[Any]:
        """A call of a function that lives elsewhere, by its name and with its bare argument, for `enqueue_many`."""
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a job, got {name!r}; a task has enqueue(...) and job(...)")
        return self.task(name, **chosen).call_with(argument, (argument,), {})

    async def aenqueue(self, name: str, argument: Any = None, **chosen: Unpack[JobOptions]) -> Handle[Any]:
        """Enqueue a job by name, with its bare argument, for functions that live elsewhere."""
        return (await self.aenqueue_many([self.new_job(name, argument, **chosen)]))[0]

    async def aenqueue_many(self, calls: Iterable[Call[R_co]], *, request: str | None = None) -> list[Handle[R_co]]:
        """Enqueue calls, made with `task.job(...)` or `new_job`; 1000 at a time, of which all are enqueued or none.

        After Unavailable they may be there or not. Repeating the same call with the same `request`, any text
        of your own, enqueues nothing twice (within ten minutes, unless the settings say otherwise).
        """
        calls, transport = calls_of(calls), await self.link.open()
        siblings: dict[Any, str | int] = {}
        done: list[Handle[R_co]] = []
        for start in range(0, len(calls), BATCH):
            part = calls[start : start + BATCH]
            siblings |= {call: index for index, call in enumerate(part)}
            token = request and (f"{request}:{start}" if start else request)
            added = await transport.enqueue([call.new_job(siblings) for call in part], token)
            pairs = list(zip(part, added, strict=True))
            siblings |= {call: job.id for call, job in pairs}
            done += [Handle(job.id, self.link, call.task, job.created) for call, job in pairs]
        return done

    enqueue, enqueue_many = plain(aenqueue), plain(aenqueue_many)

    # -- waiting ----------------------------------------------------------------------------------

    def handle(self, job_id: str) -> Handle[Any]:
        """A job by its id. Asks nobody: it may not exist."""
        return Handle(job_id, self.link)

    async def agather(
        self, jobs: Iterable[Handle[R_co]], timeout: float | None = None, *, return_errors: bool = False
    ) -> list[R_co]:
        """The results of many jobs in order, as `result` of each, within `timeout` seconds in all.

        Raises what the first that goes wrong raises; with `return_errors` these stand among the results.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        results: list[Any] = []
        for job in jobs:
            try:
                results.append(await job.aresult(None if deadline is None else max(0.0, deadline - time.monotonic())))
            except Exception as error:
                if not return_errors:
                    raise
                results.append(error)
        return results

    async def adependency_results(self, *, return_errors: bool = False) -> list[Any]:
        """In a job: the results of those that it depends on, in the order of its `depends`. They stay until
        it has ended. Each is of the type that its own function is annotated to return, where this object has it.

        Raises NoResult for one that keeps none, or whose result was gone when this job was enqueued; JobError
        or JobCancelled for one that was not done (`if_failed="run"`); NotFound when nothing is known of one any
        more; each names the job. With `return_errors` these stand among the results. LookupError outside of a job.
        """
        job = current_job.get(None)
        if job is None:
            raise LookupError("dependency_results() is for a function that runs as a job, while it runs")
        ids = list(job.depends or ())
        documents = await batched((await self.aengine()).get, ids)
        tasks = [document and self.tasks.get(document["name"]) for document in documents]
        jobs = [Handle[Any](job_id, self.link, task) for job_id, task in zip(ids, tasks, strict=True)]
        return await self.agather(jobs, return_errors=return_errors)

    gather, dependency_results = plain(agather), plain(adependency_results)

    # -- operations -------------------------------------------------------------------------------

    async def aengine(self) -> Operations:
        """The operations as they are, for the loop that runs, with values packed: see `Engine`."""
        return (await self.link.open()).engine

    @property
    def operations(self) -> PlainOperations:
        """All operations by their names: `jq.operations.kick(ids=[…])`, which is `jq.call("kick", ids=[…])`."""
        return PlainOperations(self.call)

    @property
    def aoperations(self) -> Operations:
        """The same for coroutines: `await jq.aoperations.kick(ids=[…])`."""
        return cast(Operations, PlainOperations(self.acall))

    async def acall(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        """Run one operation (docs/operations.md): `jq.call("kick", where={"queue": "mail"}, delay=5)`. Type checkers
        know the arguments of `jq.operations.kick`, which is the same. Values in documents come unpacked. What changes
        all jobs that match (`where`) does so in steps, all of them unless `cursor` or `count` is given; `changed` is
        how many in all. Raises LookupError for an unknown operation, TypeError for an unknown argument."""
        contract_of(operation)
        method = getattr(await self.aengine(), operation)
        reply = await method(*arguments, **named)
        if hasattr(reply, "changed") and not named.keys() & {"cursor", "count"}:
            while reply.cursor:
                step = await method(*arguments, **named, cursor=reply.cursor)
                reply = step._replace(changed=reply.changed + step.changed)
        return unpacked(reply, self.link.serializer)

    async def aeach(self, operation: str, /, *arguments: Any, **named: Any) -> AsyncGenerator[Any, None]:
        """All that an operation lists, page after page: `jq.each("queues")`, `jq.each("tags")`."""
        if "count" in {argument.name for argument in contract_of(operation).arguments}:
            named.setdefault("count", PAGE)
        while True:
            reply = await self.acall(operation, *arguments, **named)
            for row in reply.documents if isinstance(reply, Page) else reply:
                yield row
            if not isinstance(reply, Page) or not reply.cursor:
                return
            named["cursor"] = reply.cursor

    def ajobs(self, *, newest: bool = False, brief: bool = False, **where: Unpack[Where]) -> AsyncGenerator[Any, None]:
        """All jobs that match. `brief`: without argument, result and error. `newest`: the order within a state
        (a tag, a group) is turned round."""
        conditions = given(**known(where, Where, "condition"))
        return self.aeach("jobs", conditions, newest=newest or None, brief=brief or None)

    async def arepeat(self, schedule_id: str, call: Call[Any], **when: Unpack[When]) -> Document:
        """Make a call again and again: `jq.repeat("acme-report", report.job("acme"), cron="0 8 * * mon")`.
        Creates or replaces the schedule of this id; its document, with `next_ms`. Raises Invalid."""
        [call] = calls_of(call)
        fields = {"argument": call.argument, **known(when, When)}
        return cast(Document, await self.acall("schedule", schedule_id, call.spec(), **fields))

    call, each, jobs, repeat = plain(acall), plain_each(aeach), plain_each(ajobs), plain(arepeat)

    def close(self) -> None:
        """Close the connections. Need not be called: they close when the process ends."""
        self.link.close()

    # -- parts ------------------------------------------------------------------------------------

    def _job(self, function: Any = None, /, **given: Any) -> Any:
        if function is None:
            return partial(self._job, **given)
        name = given.pop("name", None) or getattr(function, "__name__", None)
        if not isinstance(name, str) or name == "<lambda>":
            raise TypeError(f"{function!r} has no name; give one, text: @jq.job(name=...)")
        if name in self.tasks:
            raise ValueError(f"there is a job {name!r} already; give this one another: @jq.job(name=...)")
        if not callable(function) or isinstance(function, type):
            raise TypeError(f"job {name}: expected a function, got {function!r}")
        task: Task[..., Any] = DefinedTask(self, function, name, given)
        self.tasks[name] = task
        return task


def _add(declared: dict[str, Bring], what: str, new_id: str, bring: Bring) -> None:
    if (name := f"{what} {new_id}") in declared:
        raise ValueError(f"there is a {name} already; give this one another id")
    declared[name] = bring


# -- what a program declares beside its jobs: limits and schedules, which workers bring to the server when they start


def _limit_of(jq: Any, match: Match, own: dict[str, Any]) -> tuple[str, Bring]:
    """Its id, and what brings it. Raises TypeError for one that cannot be."""
    limit_id = own.pop("id", None) or (match.name if isinstance(match, Task) else None)
    matcher = {"name": match.name} if isinstance(match, Task) else match
    if not isinstance(matcher, Mapping):
        raise TypeError(f"expected a task (@jq.limit goes above @jq.job), or a map of conditions; got {match!r}")
    if not isinstance(limit_id, str):
        raise TypeError("give the limit an id: jq.limit({...}, id='per-customer', concurrency=5)")
    limits = {"declared": _digest(matcher, own), **known(own, Limits, "option of a limit")}
    return limit_id, lambda: jq.acall("constrain", limit_id, matcher, **limits)


def _schedule_of(jq: Any, task: Any, when: ScheduleOptions) -> tuple[str, Bring]:
    """Its id, and what brings it. Raises TypeError or ValueError for one that cannot be. When its moments are the
    engine judges."""
    if not isinstance(task, Task):
        raise TypeError("@jq.schedule(...) goes above @jq.job")
    own: dict[str, Any] = {**known(when, ScheduleOptions)}
    schedule_id, args, kwargs = own.pop("id", None) or task.name, own.pop("args", ()), own.pop("kwargs", {})
    task = task.options(**own.pop("options", {}))
    if task.signature is not None:  # values wait until all types are known
        try:
            task.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"schedule {schedule_id}, {task.name}{task.signature}: {error}") from None

    async def bring() -> None:
        call = task.job(*args, **kwargs)
        # A new rule of a time zone makes another declaration.
        digest = _digest(call.spec(), call.argument.hex(), zones.with_rule(given(**own)))
        await jq.arepeat(schedule_id, call, **cast(When, {"declared": digest, **own}))

    return schedule_id, bring


def _digest(*declaration: Any) -> str:
    """Equal for equal declarations, in every process."""
    text = json.dumps(declaration, sort_keys=True, default=repr)
    return hashlib.blake2s(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
