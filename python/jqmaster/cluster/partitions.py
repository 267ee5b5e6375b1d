"""The partitions of a cluster, asked one by one, or all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

from jqmaster.cluster.names import number_of, partitions
from jqmaster.cluster.routes import Routes, unpacked
from jqmaster.connection import plainly
from jqmaster.engine.calling import Argument, pack
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import NotFound, Unavailable


class Call:
    """An operation, and what it is given: a spec, in most cases, and blobs."""

    def __init__(self, operation: str, arguments: Sequence[Argument]) -> None:
        self.operation, self.arguments = operation, arguments
        self.spec = unpacked(arguments[0]) if arguments else {}

    def but(self, **changes: Any) -> Call:
        """With another spec; None takes a field out."""
        spec = {name: value for name, value in (self.spec | changes).items() if value is not None}
        return Call(self.operation, [pack(spec), *self.arguments[1:]])


async def all_of(asked: Iterable[Awaitable[Any]]) -> list[Any]:
    """The answers, once all are there; else the first problem, then as well. Where there is no loop one is asked after
    the other, and none after a problem."""
    if plainly.is_plain():
        return [await one for one in asked]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for problem in answers:
        if isinstance(problem, BaseException):
            raise problem
    return answers


class Partition(Engine):
    """One of them, which is named where it does not answer."""

    async def raw(self, operation: str, *arguments: Argument) -> Any:
        try:
            return await super().raw(operation, *arguments)
        except Unavailable as problem:
            raise type(problem)(problem.message, problem.cause, f"partition {self.namespace}") from problem


class Partitions(Engine):
    """Each has an engine and connections of its own. What belongs to none in particular is that of the first."""

    def __init__(self, url: str, namespace: str, **how: Any) -> None:
        """`how`: of `Engine`. Raises ValueError for a name that cannot be."""
        self.namespaces = partitions(namespace)
        engines = [Partition(connect(url), name, **how) for name in self.namespaces]
        super().__init__(engines[0].redis, self.namespaces[0], **how)
        self.engines = engines
        self.routes = Routes(engines)
        self.moves: dict[str, float] = {}  # when a worker is to look in all again

    def of(self, job_id: str) -> Engine:
        return self.engines[self.number_of(job_id)]

    def number_of(self, what: object) -> int:
        """The partition of a job's id, or the one where a name is noted."""
        return number_of(what, len(self.engines)) if isinstance(what, str | bytes) else 0

    def parts(self, ids: Iterable[object]) -> dict[int, list[int]]:
        """The indexes of ids by the partition that each is of."""
        found: dict[int, list[int]] = {}
        for index, one in enumerate(ids):
            found.setdefault(self.number_of(one), []).append(index)
        return found

    async def at(self, number: int, call: Call) -> Any:
        """The answer of one partition."""
        return await self.engines[number].raw(call.operation, *call.arguments)

    async def everywhere(self, call: Call, *, changes: bool = False, but: int | None = None) -> list[Any]:
        """The answers of all partitions. `changes`: the others are asked after the first one, so that what it refuses
        changes nothing anywhere; those that have no such thing are left out, as long as not all say so."""
        absent: list[NotFound] = []

        async def ask(number: int) -> Any:
            try:
                return [await self.at(number, call)]
            except NotFound as problem:
                absent.append(problem)
                return []

        numbers = [number for number in range(len(self.engines)) if number != but]
        answers = [await ask(number) for number in numbers[:changes]]
        answers += await all_of(map(ask, numbers[len(answers) :]))
        if absent and (not changes or len(absent) == len(self.engines)):
            raise absent[0]
        return [answer for some in answers for answer in some]
