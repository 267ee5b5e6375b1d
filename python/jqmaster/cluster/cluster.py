"""The operations of a cluster: as `engine.engine.Engine` has those of one namespace, over all partitions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from jqmaster.cluster.call import Call, all_of
from jqmaster.cluster.names import number_of, partitions
from jqmaster.cluster.routes import Routes
from jqmaster.cluster.waiting import ClusterWaiting
from jqmaster.cluster.ways import WAYS, enqueue
from jqmaster.engine.calls import Argument
from jqmaster.engine.durable import Durable
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import Form
from jqmaster.errors import JQError, NotFound, Unavailable


class Cluster(Engine):
    """The operations of a cluster, whose name is such as `{shop:*/16}`. Raises what `jqmaster.errors` has, and
    ValueError for a name that cannot be. What belongs to no partition in particular is that of the first.
    """

    def __init__(self, url: str, namespace: str, *, form: Form = "auto", **how: Any) -> None:
        """`how`: of `Caller`."""
        self.namespaces = partitions(namespace)
        clients = [connect(url) for _ in self.namespaces]
        super().__init__(clients[0], self.namespaces[0], form=form, **how)
        self.engines = [
            Engine(client, name, form=form, **how) for client, name in zip(clients, self.namespaces, strict=True)
        ]
        self.routes = Routes(self.engines)
        self.picking = ClusterWaiting(self.engines)
        self._turns = itertools.count()

    # -- as an engine -----------------------------------------------------------------------------

    async def _call(self, script: str, arguments: Sequence[Argument], durable: Durable | None = None) -> Any:
        if durable is None:
            return await WAYS[script](self, Call(script, arguments))
        lacking: list[str | None] = []

        async def at(number: int, call: Call) -> Any:
            reply, missing = await self.engines[number].call_durably(script, call.arguments, durable)
            lacking.append(missing)
            return reply

        reply = await enqueue(self, Call(script, arguments), at)
        return reply, next((missing for missing in lacking if missing), None)

    async def pipeline(self, calls: Sequence[tuple[str, Sequence[Argument]]]) -> list[Any]:
        """As `Caller.pipeline`, of calls that begin with a job's id."""

        async def ask(number: int, indexes: list[int]) -> None:
            replies = await self.engines[number].pipeline([calls[index] for index in indexes])
            for index, reply in zip(indexes, replies, strict=True):
                answers[index] = reply

        answers: list[Any] = [None] * len(calls)
        parts: dict[int, list[int]] = {}
        for index, (_, arguments) in enumerate(calls):
            parts.setdefault(self.number_of(arguments[0]), []).append(index)
        await all_of(ask(*part) for part in parts.items())
        return answers

    async def differences(self) -> list[str]:
        """What is set otherwise in some partitions than in the first; see `Calling.differences`."""
        first, *others = [await _set_in(engine) for engine in self.engines]
        return [
            f"{what} is not in partition {number} what it is in partition 0: repeat the call that set it"
            for number, other in enumerate(others, 1)
            for what in sorted(first.keys() | other.keys())
            if first.get(what) != other.get(what)
        ]

    async def close(self) -> None:
        """Close the connections."""
        await self.picking.stop()
        await all_of(engine.redis.aclose() for engine in self.engines)

    # -- for the ways of operations ---------------------------------------------------------------

    def number_of(self, what: object) -> int:
        """The partition of a job's id, or the one where a name is noted."""
        return number_of(what, len(self.engines)) if isinstance(what, str | bytes) else 0

    def in_turn(self) -> Iterator[int]:
        """All partitions, each time from another one on."""
        count, first = len(self.engines), next(self._turns)
        return ((first + step) % count for step in range(count))

    async def at(self, number: int, call: Call) -> Any:
        """The answer of one partition."""
        try:
            return await self.engines[number].call(call.operation, *call.arguments)
        except Unavailable as problem:
            text = f"partition {number}, {self.namespaces[number]}: {problem.message}"
            raise Unavailable(text, problem) from problem

    async def everywhere(self, call: Call, *, lacking: bool = False, but: int | None = None) -> list[Any]:
        """The answers of all partitions. `lacking`: None for one that has no such thing, as long as not all say so."""
        numbers = [number for number in range(len(self.engines)) if number != but]
        absent: list[NotFound] = []

        async def ask(number: int) -> Any:
            try:
                return await self.at(number, call)
            except NotFound as problem:
                if not lacking:
                    raise
                absent.append(problem)
                return None

        answers = await all_of(map(ask, numbers))
        if absent and len(absent) == len(numbers) and but is None:
            raise absent[0]
        return answers

    async def in_order(self, call: Call) -> list[Any]:
        """Change the same in all partitions, one after the other, also behind one that does not answer. Raises
        Unavailable that names those; what the first one refuses changes nothing anywhere."""
        answers: list[Any] = []
        absent: list[JQError] = []
        away: list[str] = []
        for number in range(len(self.engines)):
            try:
                answers.append(await self.at(number, call))
            except NotFound as problem:
                absent.append(problem)
            except Unavailable as problem:
                away.append(problem.message)
        if away:
            raise Unavailable(f"not done in {'; '.join(away)}. Repeat the call: it may be done twice")
        if not answers:
            raise absent[0]
        return answers


async def _set_in(engine: Engine) -> dict[str, Any]:
    """What is set in a partition, by what it is."""
    found: dict[str, Any] = {f"setting {name}": value for name, value in (await engine.config()).items()}
    cursor = ""
    while True:
        page = await engine.queues(cursor=cursor, count=1000)
        for queue in page.documents:
            own = {name: queue.get(name) for name in ("paused", "max_waiting", "fair", "settings")}
            if own != {"paused": False, "max_waiting": 0, "fair": None, "settings": None}:
                found[f"queue {queue['name']}"] = own
        if not (cursor := page.cursor):
            break
    while True:
        page = await engine.constraints(cursor=cursor, count=1000)
        for constraint in page.documents:
            told = ("match", "by", "concurrency", "rate", "cost", "order", "shared")
            found[f"constraint {constraint['id']}"] = {name: constraint.get(name) for name in told}
        if not (cursor := page.cursor):
            break
    while True:
        page = await engine.keys(cursor=cursor, count=1000, digests=True)
        found |= {f"key {key['id']}": (key["digest"], key["roles"], key.get("queues")) for key in page.documents}
        if not (cursor := page.cursor):
            return found
