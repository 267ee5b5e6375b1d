"""Calling the scripts: one method per operation of docs/protocol.md, and a raw way for everything else.

redis-py may send a command again when its reply was lost; the script then runs twice. ``connect`` therefore
retries nothing by default. With retries, or where a caller repeats a call after ``Unavailable``, give
``enqueue`` and ``pick`` a ``request`` token; every other operation is safe to repeat as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgpack
import redis.exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff

from . import replies
from .errors import Invalid, JQError, Unavailable, Version, from_redis
from .luabuild import Script
from .replies import Assigned, Assignment, Audited, Document, Enqueued, Finished, Page, Picked
from .scripts import builtin, check_namespace, install

log = logging.getLogger(__name__)

Argument: TypeAlias = bytes | str | int
Spec: TypeAlias = Mapping[str, Any]
Holding: TypeAlias = tuple[str, int]  # job id, attempt

_HEALS = 3  # rounds: scripts lost, namespace lost, and both once more


def connect(url: str, *, retries: int = 0, max_connections: int = 64) -> Redis:
    """A Redis client for ``redis://``, ``rediss://`` or ``unix://`` URLs, with replies as bytes.

    ``retries``: how often a command whose reply was lost is sent again; leave it 0 unless every call is safe
    to repeat. More than ``max_connections`` calls at a time wait for each other. Connects on first use.

    There is no limit on how long a reply may take: redis-py's own would send every command through
    ``asyncio.wait_for``, which on Python 3.11 loses a cancellation that comes while the send completes.
    ``Engine`` sets its own.
    """
    return Redis.from_pool(
        BlockingConnectionPool.from_url(
            url,
            max_connections=max_connections,
            protocol=2,
            decode_responses=False,
            socket_timeout=None,
            socket_connect_timeout=5.0,
            health_check_interval=30,
            retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=1.0), retries),
        )
    )


def pack(spec: Spec, path: str = "") -> bytes:
    """Pack a spec. Raises Invalid, naming the field under ``path``, for what MessagePack cannot hold."""
    try:
        packed: bytes = msgpack.packb(spec)
    except (TypeError, ValueError, OverflowError) as whole:
        for key, value in spec.items():
            try:
                msgpack.packb({key: value})
            except (TypeError, ValueError, OverflowError) as problem:
                raise Invalid(
                    f"cannot be packed as MessagePack: {problem}", f"{path}.{key}".lstrip(".")
                ) from problem
        raise Invalid(f"cannot be packed as MessagePack: {whole}", path or None) from whole
    return packed


def given(**fields: Any) -> dict[str, Any]:
    """Those fields that are not None: an absent field means its default."""
    return {name: value for name, value in fields.items() if value is not None}


class Engine:
    """Calls the scripts of one namespace. Holds no connection of its own; the caller closes ``redis``.

    Scripts that Redis has lost (SCRIPT FLUSH, restart, failover) are loaded again, and a namespace that has
    vanished (FLUSHALL) is set up again, when a call meets it. Raises what ``jqmaster.errors`` has.
    """

    def __init__(
        self,
        redis: Redis,
        namespace: str = "{jq}",
        *,
        scripts: Mapping[str, Script] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        """``timeout_s``: how long Redis may take to answer a call; then the call raises Unavailable."""
        if redis.get_encoder().decode_responses:
            raise ValueError("the client must not decode responses: arguments and results are bytes")
        self.redis = redis
        self.namespace = check_namespace(namespace)
        self.scripts = builtin() if scripts is None else scripts
        self._meta = f"{namespace}:meta"
        self._timeout_s = timeout_s

    # --- raw calls ---

    async def call(self, script: str, *arguments: Argument) -> Any:
        """Run one script; its reply as it came: bytes, integers, lists, None."""
        sha = self.scripts[script].sha
        for round_ in range(_HEALS + 1):
            try:
                async with asyncio.timeout(self._timeout_s):
                    return await self.redis.execute_command(
                        "EVALSHA", sha, 2, self.namespace, self._meta, *arguments
                    )
            except TimeoutError as problem:
                raise self._late(problem) from problem
            except redis.exceptions.RedisError as problem:
                if round_ == _HEALS or not await self._heal([(script, problem)]):
                    raise from_redis(problem) from problem
        raise AssertionError("unreachable")

    def _late(self, problem: TimeoutError) -> Unavailable:
        return Unavailable(f"Redis did not answer within {self._timeout_s:g} s", problem)

    async def pipeline(self, calls: Sequence[tuple[str, Sequence[Argument]]]) -> list[Any]:
        """Run several scripts in one round trip; per call its reply, or the JQError it met.

        Not a transaction: each call stands alone. Calls that met a lost script or namespace are sent
        again, in their order, after the others have run. Raises Unavailable when the connection fails.
        """
        results: list[Any] = [None] * len(calls)
        waiting = list(range(len(calls)))
        for round_ in range(_HEALS + 1):
            try:
                async with self.redis.pipeline(transaction=False) as pipe:
                    for index in waiting:
                        script, arguments = calls[index]
                        pipe.execute_command(
                            "EVALSHA", self.scripts[script].sha, 2, self.namespace, self._meta, *arguments
                        )
                    async with asyncio.timeout(self._timeout_s):
                        answers = await pipe.execute(raise_on_error=False)
                for index, reply in zip(waiting, answers, strict=True):
                    results[index] = reply
            except TimeoutError as problem:
                raise self._late(problem) from problem
            except redis.exceptions.RedisError as problem:
                raise from_redis(problem) from problem
            failed = [index for index in waiting if isinstance(results[index], redis.exceptions.RedisError)]
            waiting = [index for index in failed if _curable(results[index])]
            if round_ == _HEALS or not await self._heal(
                [(calls[index][0], results[index]) for index in waiting]
            ):
                break
        return [
            from_redis(reply) if isinstance(reply, redis.exceptions.RedisError) else reply
            for reply in results
        ]

    async def _heal(self, failures: Sequence[tuple[str, Exception]]) -> bool:
        """Bring back what these calls missed. False when there is nothing to bring back."""
        problems = [problem for _, problem in failures if _curable(problem)]
        try:
            if any(not isinstance(problem, redis.exceptions.NoScriptError) for problem in problems):
                log.warning("namespace %s is not set up in this Redis: setting it up", self.namespace)
                current = await self.redis.hexists(f"{self.namespace}:manifest", "version")
                await install(self.redis, self.namespace, self.scripts, make_current=not current)
            elif problems:
                log.info("Redis has lost the scripts of namespace %s: loading them", self.namespace)
                async with self.redis.pipeline(transaction=False) as pipe:
                    for name in dict.fromkeys(name for name, _ in failures):
                        pipe.script_load(self.scripts[name].source)
                    await pipe.execute()
        except redis.exceptions.RedisError as problem:
            raise from_redis(problem) from problem
        return bool(problems)

    # --- jobs ---

    async def enqueue(
        self, jobs: Sequence[tuple[Spec, bytes]], *, request: str | None = None
    ) -> list[Enqueued]:
        """Enqueue all of ``jobs``, (spec, argument) each, or none. ``request`` makes repeating harmless."""
        arguments: list[Argument] = [] if request is None else [pack({"request": request})]
        for index, (spec, argument) in enumerate(jobs):
            arguments += (pack(spec, f"jobs[{index}]"), argument)
        return [
            Enqueued(replies.text(id_), bool(created))
            for id_, created in await self.call("enqueue", *arguments)
        ]

    async def pick(self, worker: str, queues: str | Sequence[str], count: int = 1, **options: Any) -> Picked:
        """Start up to ``count`` jobs. ``options``: ``order``, ``request``, ``wait``."""
        spec = given(worker=worker, queues=queues, count=count, **options)
        return replies.picked(await self.call("pick", pack(spec)))

    async def heartbeat(self, worker: str, jobs: Sequence[Holding] = ()) -> list[int | str]:
        """Renew leases: per job the remaining milliseconds, or ``LOST`` or ``CANCELLED``."""
        reply = await self.call("heartbeat", pack({"worker": worker, "jobs": list(jobs)}))
        return [item if isinstance(item, int) else replies.text(item) for item in reply]

    async def finish(
        self, worker: str, outcomes: Sequence[tuple[Spec, bytes]] = (), *, pick: Spec | None = None
    ) -> Finished:
        """Report (outcome, blob) pairs; with ``pick`` (a pick's spec without worker) fetch the next jobs."""
        arguments = [pack(given(worker=worker, pick=pick))]
        for index, (outcome, blob) in enumerate(outcomes):
            arguments += (pack(outcome, f"outcomes[{index}]"), blob)
        reply = await self.call("finish", *arguments)
        return Finished(replies.texts(reply[0]), replies.picked(reply[1]) if len(reply) > 1 else None)

    async def release(self, worker: str, jobs: Sequence[Holding], *, delay: float | None = None) -> list[str]:
        """Give jobs back without spending a retry; per job its state or why not. ``delay`` in seconds."""
        return replies.texts(
            await self.call("release", pack(given(worker=worker, jobs=list(jobs), delay=delay)))
        )

    async def cancel(self, ids: Sequence[str], *, force: bool | None = None) -> list[str]:
        """Cancel jobs; per job the state it was in, ``NOTFOUND`` or ``CONFLICT``."""
        return replies.texts(await self.call("cancel", pack(given(ids=list(ids), force=force))))

    async def result(self, job_id: str) -> tuple[str, bytes | None]:
        """(state, result if there is one). Reading it starts its grace. Raises NotFound."""
        reply = await self.call("result", job_id)
        return replies.text(reply[0]), reply[1] if len(reply) > 1 else None

    async def get(self, *ids: str) -> list[Document | None]:
        """Per job its document, or None. ``argument``, ``result`` and ``error`` in it are bytes."""
        return [None if item is None else replies.document(item) for item in await self.call("get", *ids)]

    async def watch(self, *ids: str) -> list[str | None]:
        """Per job its state, or None; the end of each will be published on ``<namespace>:ended``."""
        return [None if item is None else replies.text(item) for item in await self.call("watch", *ids)]

    async def tick(self, limit: int | None = None) -> tuple[int, int]:
        """Do what is due by the clock: (ms until more is due: 0 at once, -1 nothing planned; steps done)."""
        next_ms, moved = await self.call("tick", pack(given(limit=limit)))
        return next_ms, moved

    # --- queues ---

    async def queue(
        self, name: str, *, paused: bool | None = None, max_waiting: int | None = None
    ) -> Document:
        """Change a queue's settings; its document afterwards."""
        return replies.plain_document(
            await self.call("queue", pack(given(name=name, paused=paused, max_waiting=max_waiting)))
        )

    async def queues(
        self, names: Sequence[str] | None = None, *, cursor: str | None = None, count: int | None = None
    ) -> Page:
        """The queues named, or a page of all."""
        spec = given(names=None if names is None else list(names), cursor=cursor, count=count)
        return replies.page(await self.call("queues", pack(spec)))

    # --- workers that are pushed to ---

    async def register(
        self, name: str, queues: str | Sequence[str], *, url: str | None = None, max_jobs: int | None = None
    ) -> str:
        """Register a worker; its id."""
        return replies.text(
            await self.call("register", pack(given(name=name, queues=queues, url=url, max_jobs=max_jobs)))
        )

    async def unregister(self, worker: str) -> int:
        """Remove a worker; how many jobs went back to their queues. Raises NotFound."""
        return int(await self.call("unregister", pack({"worker": worker})))

    async def workers(self, *, cursor: str | None = None, count: int | None = None) -> Page:
        """A page of the registered workers."""
        return replies.page(await self.call("workers", pack(given(cursor=cursor, count=count))))

    async def assign(self, master: str, *, limit: int | None = None, wait: Spec | None = None) -> Assigned:
        """Start jobs on registered workers with room. For masters, which then deliver them."""
        reply = await self.call("assign", pack(given(master=master, limit=limit, wait=wait)))
        return Assigned(
            reply[0],
            [
                Assignment(replies.text(worker), replies.text(url), replies.job(packed, argument))
                for worker, url, packed, argument in reply[1:]
            ],
        )

    async def refuse(
        self, worker: str, jobs: Sequence[Holding], why: str, *, retry_after: float | None = None
    ) -> list[str]:
        """Give back what a worker did not take; ``why``: unknown, busy, unreachable. ``retry_after`` in s."""
        spec = given(worker=worker, jobs=list(jobs), why=why, retry_after=retry_after)
        return replies.texts(await self.call("refuse", pack(spec)))

    # --- the namespace ---

    async def config(self, set: Spec | None = None) -> Document:
        """All settings, after changing those in ``set``."""
        return replies.plain_document(await self.call("config", pack(given(set=set))))

    async def setup(self) -> int:
        """Create the namespace if it is not there; its schema version."""
        return int(await self.call("setup"))

    async def audit(self, cursor: str = "0", count: int | None = None) -> Audited:
        """Recount one step of the indexes against the job records."""
        reply = await self.call("audit", pack(given(cursor=cursor, count=count)))
        return Audited(replies.text(reply[0]), replies.texts(reply[1:]))

    async def audit_all(self) -> list[str]:
        """Every problem ``audit`` finds, from start to end."""
        found: list[str] = []
        step = await self.audit()
        while True:
            found += step.problems
            if step.cursor == "0":
                return found
            step = await self.audit(step.cursor)


def _curable(problem: Any) -> bool:
    """Whether loading scripts or setting the namespace up lets the call succeed."""
    if isinstance(problem, redis.exceptions.NoScriptError):
        return True
    if not isinstance(problem, redis.exceptions.ResponseError):
        return False
    parsed: JQError = from_redis(problem)
    return isinstance(parsed, Version) and "not set up" in parsed.message
