"""Waiting for jobs to end, for clients that poll for an outcome: one subscription for all of a namespace."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

from jqmaster.connection.subscriptions import listened
from jqmaster.connection.wake import end
from jqmaster.engine import replies
from jqmaster.engine.engine import Engine
from jqmaster.errors import Unavailable

T = TypeVar("T")

ENDED = frozenset({"done", "error", "cancelled", "skipped"})
LOOK_S = 5.0  # how long one may take
STOP_TIMEOUT_S = 2.0


class Ended:
    """Tells those who wait when a job reaches `done`, `error`, `cancelled` or `skipped`.

    A subscription is made for the first who waits at a namespace and kept. Whenever an announcement may have been
    missed everybody there asks again; when nothing was announced for a while as well, and at the end of their time.
    """

    def __init__(self, engine: Engine) -> None:
        self.is_subscribed = False  # whether an end would be heard of now
        self._engine = engine
        self._waiters: dict[bytes, set[asyncio.Queue[str]]] = {}
        self._listeners: dict[Engine, asyncio.Task[None]] = {}
        self._is_stopped = False

    async def wait(self, job_id: bytes, timeout_s: float) -> str | None:
        """The state of `job_id` once it has ended, or after `timeout_s` seconds, or `drain`; None for an unknown job.
        Raises Unavailable when the first look fails, or the last."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        if timeout_s <= 0 or self._is_stopped:
            return await soon(glance(self._engine, job_id))
        told: asyncio.Queue[str] = asyncio.Queue()  # the state at its end; "" when that may have been missed
        self._waiters.setdefault(job_id, set()).add(told)
        here = self._engine.of(job_id.decode())
        if here not in self._listeners or self._listeners[here].done():
            self._listeners[here] = asyncio.create_task(self._listen(here), name="ended jobs")
        try:
            state = await self._look(job_id)
            while state is not None and state not in ENDED and not self._is_stopped:
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

    def drain(self) -> None:
        """Answer everybody at once with the state as it is, and whoever comes later too."""
        self._is_stopped = True
        self._look_again()

    async def stop(self) -> None:
        """`drain`, and close the subscriptions; bounded by `STOP_TIMEOUT_S`."""
        self.drain()
        await end(self._listeners.values(), STOP_TIMEOUT_S)

    async def _look(self, job_id: bytes) -> str | None:
        [state] = await soon(self._engine.raw("watch", job_id))
        return None if state is None else bytes(state).decode()

    async def _listen(self, here: Engine) -> None:
        async for message in listened(here.redis, f"{here.namespace}:ended"):
            self.is_subscribed = message != b""
            if not message:
                self._look_again(here)
                continue
            job_id, _, state = message.partition(b" ")
            for told in self._waiters.get(job_id, ()):
                told.put_nowait(state.decode())

    def _look_again(self, here: Engine | None = None) -> None:
        for job_id, waiting in self._waiters.items():
            if here in (None, self._engine.of(job_id.decode())):
                for told in waiting:
                    told.put_nowait("")


async def glance(engine: Engine, job_id: bytes) -> str | None:
    """The state of a job, None for an unknown one. Nobody is told of its end, so nothing is written."""
    [document] = await engine.raw("get", job_id)
    return None if document is None else str(replies.document(document)["status"])


async def soon(asking: Coroutine[Any, Any, T], within_s: float = LOOK_S) -> T:
    """What is asked of an engine. Raises Unavailable when there is no answer in time."""
    try:
        async with asyncio.timeout(within_s):
            return await asking
    except TimeoutError as problem:
        raise Unavailable(f"Redis did not answer within {within_s:g} s", problem) from problem
