"""Enqueues of many requests in one script call.

A call to Redis costs the master several times what handling one more job inside it does. So while one call
is under way, whatever arrives waits and goes with the next: an idle master adds no delay, a busy one gets
cheaper.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from jqmaster.connection.together import Asked, Together

# A batch keeps Redis busy for as long as it takes, so it is small in jobs and in bytes.
MAX_JOBS = 100
MAX_BYTES = 1 << 20

_Job = tuple[bytes, bytes]  # packed spec, raw argument


class Calls(Protocol):
    """Calls the scripts of one namespace."""

    async def call(self, script: str, /, *args: Any) -> Any:
        """Run `script` and return its reply as Redis gave it (bytes, integers, lists).

        Raises `jqmaster.errors.JQError`, also when Redis cannot be asked (`Unavailable`).
        """


class Coalescer(Together[_Job, list[Any]]):
    """Merges single enqueues into batches of one script call each."""

    def __init__(self, engine: Calls) -> None:
        super().__init__(self._call)
        self._engine = engine

    def enqueue(self, spec: bytes, argument: bytes) -> Coroutine[Any, Any, list[Any]]:
        """Enqueue one job (packed spec, raw argument); `[id, created]`.

        Raises what a call of its own would raise: a job that is refused does not touch its neighbours.
        """
        return self.get((spec, argument))

    async def _call(self, jobs: Sequence[_Job]) -> list[list[Any]]:
        reply = await self._engine.call("enqueue", *[part for job in jobs for part in job])
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
