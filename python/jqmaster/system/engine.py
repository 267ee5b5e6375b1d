"""The operations of a system as if it were one namespace: each call goes to the partitions that it concerns.

Semantics stay in the scripts: here calls are taken apart, carried and put together again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.asyncio import Redis

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, connect, pack
from jqmaster.engine.durable import Durable
from jqmaster.engine.engine import Engine, Operations
from jqmaster.engine.scripts import Form, check_namespace
from jqmaster.errors import Invalid, JQError, NotFound
from jqmaster.system import calls, limits, reading, settings, working
from jqmaster.system.record import System, partition_of
from jqmaster.system.routing import Part, split, unpacked
from jqmaster.system.ways import all_of, not_yet, spec_of


class SystemEngine(Operations):
    """``url`` is that of the cluster, or server, ``root`` the system's name, or that of another of its partitions,
    which does while partition 0 is away. The record is read, and connections are made, with the first call.

    Operations that do not work over partitions yet raise Invalid, which names the operation: ask one partition
    (``partitions``), or each. A call that concerns several partitions goes to all of them at once; what one refuses
    is raised, and the others have done their part: each is all or nothing for itself.
    """

    def __init__(self, url: str, root: str, *, form: Form = "auto", actor: str | None = None) -> None:
        self.url = url
        self.root = check_namespace(root)
        self.form = form
        self.actor = actor
        self._clients: list[Redis] = []
        self._engines: list[Engine] = []
        self._opening = asyncio.Lock()
        self.record: System | None = None

    async def partitions(self) -> Sequence[Engine]:
        """The engine of each. Raises NotFound where there is no system, Version, Unavailable."""
        if not self._engines:
            async with self._opening:
                if not self._engines:
                    self.record = await calls.read(self.url, self.root)
                    self._clients = [connect(self.url) for _ in self.record.partitions]
                    self._engines = [
                        Engine(client, one.namespace, form=self.form, actor=self.actor)
                        for client, one in zip(self._clients, self.record.partitions, strict=True)
                    ]
        return self._engines

    async def of(self, job_id: Argument, path: str = "id") -> Engine:
        """The engine of the partition that gave a job's id. Raises NotFound when the system has none of the number."""
        engines = await self.partitions()
        number = partition_of(job_id)
        if number >= len(engines):
            shown = replies.text(job_id)
            raise NotFound(f"no such job: {shown}, the system {self.root} has no partition {number}", path)
        return engines[number]

    async def call(self, operation: str, *arguments: Argument) -> Any:
        way = _WAYS.get(operation)
        if way is None:
            raise not_yet(operation)
        return await way(self, operation, arguments)

    async def call_durably(
        self, operation: str, arguments: Sequence[Argument], durable: Durable
    ) -> tuple[Any, str | None]:
        lacking: list[str] = []

        async def call(engine: Engine, part: Sequence[Argument]) -> Any:
            reply, problem = await engine.call_durably(operation, part, durable)
            if problem:
                lacking.append(problem)
            return reply

        return await self.enqueue_by(call, arguments), next(iter(lacking), None)

    async def enqueue_by(
        self, call: Callable[[Engine, Sequence[Argument]], Awaitable[Any]], arguments: Sequence[Argument]
    ) -> Any:
        """Enqueue, each partition by ``call``; the reply as the script gives it."""
        engines = await self.partitions()
        assert self.record is not None
        options, parts = split(arguments, self.record)

        async def ask(part: Part) -> Any:
            try:
                return await call(engines[part.partition], [*options, *part.arguments])
            except JQError as problem:
                raise part.told(problem) from problem

        answers = await all_of(ask(part) for part in parts)
        if len(parts) == 1:
            return answers[0]
        reply: list[Any] = [None] * (2 * sum(len(part.indexes) for part in parts))
        for part, answer in zip(parts, answers, strict=True):
            for index, (job_id, created) in zip(part.indexes, replies.pairs(answer), strict=True):
                reply[2 * index : 2 * index + 2] = job_id, created
        return reply

    async def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            await client.aclose()
        self._clients, self._engines = [], []

    # -- ways: how an operation goes over partitions --------------------------------------------------

    async def _by_id(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """Of one job, whose id is the argument."""
        return await (await self.of(arguments[0])).call(operation, *arguments)

    async def _by_spec_id(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """Of one job, whose id is in the spec."""
        return await (await self.of(spec_of(arguments).get("id", ""))).call(operation, *arguments)

    async def _by_ids(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """An argument for each job: its id."""
        return await self._each(operation, arguments, [(job_id,) for job_id in arguments])

    async def _by_pairs(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """Two arguments for each job: a spec with its id, a blob."""
        pairs = list(replies.pairs(list(arguments)))
        ids = [unpacked(spec).get("id", "") for spec, _ in pairs]
        return await self._each(operation, ids, pairs)

    async def _each(self, operation: str, ids: Sequence[Argument], asked: Sequence[tuple[Argument, ...]]) -> Any:
        """An answer for each job, in order."""

        async def ask(engine: Engine, indexes: list[int]) -> Any:
            return await engine.call(operation, *(one for index in indexes for one in asked[index]))

        return await self.grouped(ids, ask, "ids")

    async def by_spec_ids(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """A spec with the ids of jobs, or with conditions, step by step."""
        spec = spec_of(arguments)
        if "where" in spec:
            return await self._steps(operation, arguments)
        ids = spec.get("ids")
        if not isinstance(ids, list):
            raise not_yet(f"{operation} without ids")
        if spec.get("atomic") and len({partition_of(one) for one in ids}) > 1:
            raise Invalid("all or nothing is possible within one partition alone", "atomic")

        async def ask(engine: Engine, indexes: list[int]) -> Any:
            return await engine.call(operation, pack({**spec, "ids": [ids[index] for index in indexes]}))

        return await self.grouped(ids, ask, "ids")

    async def grouped(
        self, ids: Sequence[Argument], ask: Callable[[Engine, list[int]], Awaitable[Any]], path: str
    ) -> list[Any]:
        """An answer for each job, in order, ``ask``ed by its place of the partition that has it."""
        groups: dict[Engine, list[int]] = {}
        for index, job_id in enumerate(ids):
            groups.setdefault(await self.of(job_id, f"{path}[{index}]"), []).append(index)
        answers = await all_of(ask(engine, indexes) for engine, indexes in groups.items())
        found: list[Any] = [None] * len(ids)
        for indexes, answer in zip(groups.values(), answers, strict=True):
            for index, one in zip(indexes, answer, strict=True):
                found[index] = one
        return found

    async def _steps(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """One partition after the other; the cursor begins with the number of the one that it is in."""
        spec = spec_of(arguments)
        engines = await self.partitions()
        number, _, cursor = str(spec.get("cursor") or "0:").partition(":")
        if not number.isascii() or not number.isdigit() or int(number) >= len(engines):
            raise Invalid("expected a cursor as the last reply gave it, or empty text", "cursor")
        at = int(number)
        reply = await engines[at].call(operation, pack({**spec, "cursor": cursor}))
        following = replies.text(reply[0])
        if following or at + 1 < len(engines):
            reply[0] = f"{at}:{following}" if following else f"{at + 1}:"
        return reply

    async def _by_key(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """By the bucket of the unique key."""
        engines = await self.partitions()
        assert self.record is not None
        key = str(spec_of(arguments).get("unique", ""))
        return await engines[self.record.home(key.encode(errors="surrogatepass"))].call(operation, *arguments)

    async def _least(self, operation: str, arguments: Sequence[Argument]) -> Any:
        """Of one answer each, or none, the least."""
        answers = await all_of(engine.call(operation, *arguments) for engine in await self.partitions())
        return min(filter(None, answers), default=[])

    async def _enqueue(self, operation: str, arguments: Sequence[Argument]) -> Any:
        return await self.enqueue_by(lambda engine, part: engine.call(operation, *part), arguments)


_Way = Callable[[SystemEngine, str, Sequence[Argument]], Awaitable[Any]]
_WAYS: dict[str, _Way] = {
    "cancel": SystemEngine.by_spec_ids,
    "change": SystemEngine._by_pairs,
    "constrain": limits.constrain,
    "depend": SystemEngine._by_spec_id,
    "discard": SystemEngine.by_spec_ids,
    "enqueue": SystemEngine._enqueue,
    "explain": SystemEngine._by_id,
    "free": SystemEngine._by_key,
    "get": SystemEngine._by_ids,
    "head": SystemEngine._least,
    "history": SystemEngine._by_id,
    "hold": limits.hold,
    "jobs": SystemEngine._steps,
    "result": SystemEngine._by_id,
    "retry": SystemEngine.by_spec_ids,
    "track": SystemEngine.by_spec_ids,
    "unconstrain": limits.unconstrain,
    "watch": SystemEngine._by_ids,
    **reading.WAYS,
    **settings.WAYS,
    **working.WAYS,
}
OPERATIONS = frozenset(_WAYS)
