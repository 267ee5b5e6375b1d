"""Waiting for jobs to end, for clients that poll for an outcome: one subscription for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Coroutine
from typing import Any, TypeVar

import msgpack

from jqmaster.connection.redis_client import RedisClient
from jqmaster.connection.subscriptions import listened
from jqmaster.connection.together import Together
from jqmaster.connection.wake import end
from jqmaster.engine import packform
from jqmaster.engine.engine import Engine
from jqmaster.errors import Unavailable

T = TypeVar("T")

ENDED = frozenset({"done", "error", "cancelled", "skipped"})
LOOK_S = 5.0  # how long one may take
STOP_TIMEOUT_S = 2.0


class Ended:
    """Tells those who wait when a job reaches `done`, `error`, `cancelled` or `skipped`.

    The subscription is made for the first who waits and kept. Whenever an announcement may have been missed everybody
    asks again; when nothing was announced for a while as well, and at the end of their time.
    """

    def __init__(self, engine: Engine, redis: RedisClient) -> None:
        self.is_subscribed = False  # whether an end would be heard of now
        self._engine = engine
        self._redis = redis
        self._asked = Together(engine, "watch")
        self._waiters: dict[bytes, set[asyncio.Queue[str]]] = {}
        self._listener: asyncio.Task[None] | None = None

    async def wait(self, job_id: bytes, timeout_s: float) -> str | None:
        """The state of `job_id` once it has ended, or after `timeout_s` seconds; None for an unknown job. Raises
        Unavailable when the first look fails, or the last."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        if timeout_s <= 0:
            return await _soon(glance(self._engine, job_id))
        told: asyncio.Queue[str] = asyncio.Queue()  # the state at its end; "" when that may have been missed
        self._waiters.setdefault(job_id, set()).add(told)
        if self._listener is None or self._listener.done():
            self._listener = asyncio.create_task(self._listen(), name="ended jobs")
        try:
            state = await self._look(job_id)
            while state is not None and state not in ENDED:
                async with asyncio.timeout_at(deadline):
                    if end_state := await told.get():
                        return end_state
                    with contextlib.suppress(Unavailable):
                        state = await self._look(job_id)
            return state
        except TimeoutError:
            # Nobody may be told that a job goes on which has ended, only because nothing was heard of it.
            return await self._look(job_id)
        finally:
            self._waiters[job_id].discard(told)
            if not self._waiters[job_id]:
                del self._waiters[job_id]

    async def stop(self) -> None:
        """Close the subscription; bounded by `STOP_TIMEOUT_S`."""
        await end([self._listener], STOP_TIMEOUT_S)

    async def _look(self, job_id: bytes) -> str | None:
        [state] = await _soon(self._asked.get(job_id))
        return None if state is None else bytes(state).decode()

    async def _listen(self) -> None:
        async for message in listened(self._redis, f"{self._engine.namespace}:ended"):
            self.is_subscribed = message != b""
            job_id, _, state = (message or b"").partition(b" ")
            waiting = [self._waiters.get(job_id, ())] if message else self._waiters.values()
            for told in itertools.chain.from_iterable(waiting):
                told.put_nowait(state.decode())


async def glance(engine: Engine, job_id: bytes) -> str | None:
    """The state of a job, None for an unknown one. Nobody is told of its end, so nothing is written."""
    [document] = await engine.raw("get", job_id)
    return None if document is None else str(msgpack.unpackb(packform.members(document)["status"]))


async def _soon(asking: Coroutine[Any, Any, T]) -> T:
    try:
        async with asyncio.timeout(LOOK_S):
            return await asking
    except TimeoutError as problem:
        raise Unavailable(f"Redis did not answer within {LOOK_S:g} s", problem) from problem
