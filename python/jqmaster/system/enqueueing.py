"""Enqueueing over the partitions of a system: a call is taken apart, and its answers are put together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument
from jqmaster.engine.durable import Durable
from jqmaster.engine.engine import Engine
from jqmaster.errors import JQError, Outdated
from jqmaster.system import former
from jqmaster.system.record import System
from jqmaster.system.routing import Moving, Part, split
from jqmaster.system.ways import all_of

_MOVES_S = 10.0  # how long a bucket may be about to move
_AGAIN_S = 0.1

Call = Callable[[Engine, Sequence[Argument]], Awaitable[Any]]
"""How a part of the call is made at its partition."""


class Enqueueing:
    """Of `SystemEngine`."""

    record: System | None

    async def partitions(self) -> Sequence[Engine]:
        raise NotImplementedError

    async def look(self, number: int = 0) -> bool:
        raise NotImplementedError

    async def catch_up(self, engine: Engine, problem: Outdated) -> None:
        raise NotImplementedError

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

    async def enqueue_by(self, call: Call, arguments: Sequence[Argument]) -> Any:
        """Enqueue, each partition by ``call``; the reply as the script gives it. What partitions know that had buckets
        before is asked first (module ``former``)."""
        await self.partitions()
        record = self.record
        assert record is not None
        try:
            if not record.former and not record.of_state("draining"):
                return await self._enqueue_parts(call, arguments)
            made = await former.met(self, arguments)
            rest, left = former.without(arguments, made)
            if not left:
                return former.together(made, [], [])
            return former.together(made, left, await self._enqueue_rest(call, rest, left))
        except Outdated:
            if self.record is None or self.record.generation <= record.generation:
                raise
        except Moving as problem:
            await self._wait_for_moves(problem)
        return await self.enqueue_by(call, arguments)

    async def _enqueue_rest(self, call: Call, rest: Sequence[Argument], left: list[int]) -> Any:
        try:
            return await self._enqueue_parts(call, rest)
        except JQError as problem:
            raise Part(0, left).told(problem) from problem

    async def _enqueue_parts(self, call: Call, arguments: Sequence[Argument]) -> Any:
        """Each where it belongs."""
        engines = await self.partitions()
        assert self.record is not None
        options, parts = split(arguments, self.record)

        async def ask(part: Part) -> Any:
            engine = engines[part.partition]
            try:
                try:
                    return await call(engine, [*options, *part.arguments])
                except Outdated as problem:  # nothing has happened
                    await self.catch_up(engine, problem)
                return await self.enqueue_by(call, [*options, *part.arguments])
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

    async def _wait_for_moves(self, problem: Moving) -> None:
        """Until no bucket is about to move."""
        deadline = time.monotonic() + _MOVES_S
        while self.record is not None and self.record.moving:
            if time.monotonic() > deadline:
                raise problem
            await asyncio.sleep(_AGAIN_S)
            await self.look()
