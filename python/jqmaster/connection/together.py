"""Many who ask at the same time share calls."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from jqmaster.errors import Conflict, Full, Invalid, JQError, NotFound, Unavailable

K = TypeVar("K")
V = TypeVar("V")

Asked: TypeAlias = tuple[K, asyncio.Future[V]]
_Job = tuple[bytes, bytes]  # packed spec, raw argument

MOST = 200
# A batch keeps Redis busy for as long as it takes, so it is small in jobs and in bytes.
MAX_JOBS = 100
MAX_BYTES = 1 << 20
_REFUSALS = (Invalid, NotFound, Conflict, Full)


class Shared(Generic[V]):
    """One call of `ask` for all who want its answer while it is under way. Who gives up does not end it."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, V]]) -> None:
        self._ask = ask
        self.task: asyncio.Task[V] | None = None

    async def get(self, most_s: float) -> V:
        """Raises what `ask` raises, and Unavailable when there is no answer after so long."""
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._ask())
            # Nobody may be left to hear why it failed.
            self.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        task = self.task
        await asyncio.wait({task}, timeout=most_s)
        if not task.done():
            raise Unavailable(f"no answer within {most_s:g} s")
        if task.cancelled():
            raise Unavailable("it was stopped")
        return task.result()


class Together(Generic[K, V]):
    """The first goes at once; while a call is under way, whatever is asked goes with the next. `ask` gets up to `MOST`
    keys, and gives a value or an error for each. When it refuses all of them, which changes nothing, each is asked for
    alone, in the same order. After a lost connection they may have been heard: nothing is asked twice.
    """

    def __init__(self, ask: Callable[[Sequence[K]], Awaitable[Sequence[V | JQError]]]) -> None:
        self._ask = ask
        self._waiting: deque[Asked[K, V]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._is_asking = False

    async def get(self, key: K) -> V:
        """What `ask` gives for `key`. Raises what it raises."""
        if self._task is None and not self._is_asking:
            return await self._get_alone(key)
        future: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        self._waiting.append((key, future))
        return await future

    async def _get_alone(self, key: K) -> V:
        """Without a task and a future, which cost as much as the call."""
        self._is_asking = True
        try:
            [answer] = await self._ask([key])
        finally:
            self._is_asking = False
            if self._waiting:
                self._task = asyncio.create_task(self._run())
        if isinstance(answer, JQError):
            raise answer
        return answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._send(self._take())
        finally:
            self._task = None
            # Only when this task was cancelled (the loop is closing) is anything left.
            while self._waiting:
                self._waiting.popleft()[1].cancel()

    def _take(self) -> list[Asked[K, V]]:
        """What goes with the next call."""
        return [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]

    async def _send(self, batch: list[Asked[K, V]]) -> None:
        batch = [(key, future) for key, future in batch if not future.done()]
        if not batch:
            return
        try:
            answers: Sequence[V | JQError] = await self._ask([key for key, _ in batch])
        except asyncio.CancelledError:
            for _, future in batch:
                future.cancel()
            raise
        except Exception as error:
            if isinstance(error, _REFUSALS) and len(batch) > 1:
                for item in batch:
                    await self._send([item])
                return
            for _, future in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, JQError):
                future.set_exception(answer)
            else:
                future.set_result(answer)


class Calls(Protocol):
    """Calls the scripts of one namespace."""

    async def raw(self, operation: str, /, *args: Any) -> Any:
        """Run it and return its reply as Redis gave it (bytes, integers, lists).

        Raises `jqmaster.errors.JQError`, also when Redis cannot be asked (`Unavailable`).
        """


class Coalescer(Together[_Job, list[Any]]):
    """Merges single enqueues into batches of one script call each. A call to Redis costs the master several times what
    handling one more job inside it does: an idle master adds no delay, a busy one gets cheaper."""

    def __init__(self, engine: Calls) -> None:
        super().__init__(self._call)
        self._engine = engine

    def enqueue(self, spec: bytes, argument: bytes) -> Coroutine[Any, Any, list[Any]]:
        """Enqueue one job (packed spec, raw argument); `[id, created]`.

        Raises what a call of its own would raise: a job that is refused does not touch its neighbours.
        """
        return self.get((spec, argument))

    async def _call(self, jobs: Sequence[_Job]) -> list[list[Any]]:
        reply = await self._engine.raw("enqueue", *[part for job in jobs for part in job])
        return [reply[at : at + 2] for at in range(0, len(reply), 2)]

    def _take(self) -> list[Asked[_Job, list[Any]]]:
        batch = [self._waiting.popleft()]
        size = len(batch[0][0][1])
        while self._waiting and len(batch) < MAX_JOBS and not (_counts(batch[0][0]) or _counts(self._waiting[0][0])):
            size += len(self._waiting[0][0][1])
            if size > MAX_BYTES:
                break
            batch.append(self._waiting.popleft())
        return batch


def _counts(job: _Job) -> bool:
    """Whether a job may name others by their index in the call: then it must not stand among strangers."""
    return b"depends" in job[0]
