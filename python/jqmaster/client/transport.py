"""What the library asks beside the operations: by the scripts in Redis, or by a master."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jqmaster.cluster.opening import Opened
from jqmaster.connection.endpoint import endpoint_of
from jqmaster.connection.subscriptions import listened
from jqmaster.engine.ended import ENDED, glance
from jqmaster.engine.engine import Engine, Operations, pack
from jqmaster.engine.options import NewJob
from jqmaster.engine.replies import Enqueued
from jqmaster.errors import NotFound


class Transport:
    """Calls of one event loop, or plain ones. All raise the classes of `jqmaster.errors`; what is packed stays
    bytes."""

    engine: Operations

    async def enqueue(self, _calls: Sequence[Any], jobs: Sequence[NewJob], request: str | None) -> list[Enqueued]:
        """Up to 1000 `jobs`, prepared from calls, which only who runs them here needs: all or none."""
        spec, argument = jobs[0] if len(jobs) == 1 else ({}, b"")
        if spec and request is None and _stands_alone(spec):
            job_id, created = await self._enqueue(pack(spec, "jobs[0]"), argument)
            return [Enqueued(job_id.decode(), bool(created))]
        return await self.engine.enqueue(jobs, request=request)

    async def ended(self, job_id: str, timeout_s: float) -> str:
        """The state once it has ended, however it did, or after so long. Raises NotFound."""
        raise NotImplementedError

    async def result(self, job_id: str) -> bytes | None:
        """The result of a job that is done, None if it keeps none. Raises NotFound, and Expired when it is gone."""
        reply = await self._result(job_id)
        return reply[1] if len(reply) > 1 else None

    async def import_records(self, records: Iterable[bytes], namespace: str) -> int:
        """Write such records into another namespace; how many keys."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the connections; bounded."""

    async def _enqueue(self, spec: bytes, argument: bytes) -> Any:
        return await self.engine.raw("enqueue", spec, argument)

    async def _result(self, job_id: str) -> Any:
        return await self.engine.raw("result", job_id)


class RedisTransport(Transport):
    """By the scripts, with no master in between."""

    def __init__(self, url: str, namespace: str, **how: Any) -> None:
        """`how`: of `Engine`."""
        self._opened = Opened(url, namespace, **how)
        self.engine: Engine = self._opened.engine

    async def import_records(self, records: Iterable[bytes], namespace: str) -> int:
        from jqmaster.engine.copying import import_records

        return await import_records(self.engine.redis, namespace, records, form=self.engine.form)

    async def close(self) -> None:
        await self._opened.close()


class LoopTransport(RedisTransport):
    """That of an event loop: those who ask at the same time share calls, and one subscription."""

    def __init__(self, url: str, namespace: str, **how: Any) -> None:
        super().__init__(url, namespace, **how)
        self._enqueuing = self._opened.enqueuing()
        self._ended = self._opened.ended()

    async def ended(self, job_id: str, timeout_s: float) -> str:
        return _known(await self._ended.wait(job_id.encode(), timeout_s), job_id)

    async def _enqueue(self, spec: bytes, argument: bytes) -> Any:
        return await self._enqueuing.enqueue(spec, argument)

    async def close(self) -> None:
        try:
            await self._ended.stop()
        finally:
            await super().close()


class PlainTransport(RedisTransport):
    """That of plain calls, of all threads. Who waits listens on a connection of their own."""

    async def ended(self, job_id: str, timeout_s: float) -> str:
        until = time.monotonic() + timeout_s
        if timeout_s <= 0:
            return _known(await glance(self.engine, job_id.encode()), job_id)
        state = await self._look(job_id)
        if state in ENDED:
            return state
        engine = self._opened.engine_of(job_id)
        heard = listened(endpoint_of(engine.redis), f"{engine.namespace}:ended", until)
        async with contextlib.aclosing(heard):
            async for message in heard:
                if message is None:
                    state = await self._look(job_id)
                    if state in ENDED:
                        return state
                elif message.startswith(job_id.encode() + b" "):
                    return message.partition(b" ")[2].decode()
        # Nobody may be told that a job goes on which has ended, only because nothing was heard of it.
        return await self._look(job_id)

    async def _look(self, job_id: str) -> str:
        [state] = await self.engine.raw("watch", job_id)
        return _known(None if state is None else bytes(state).decode(), job_id)


def _known(state: str | None, job_id: str) -> str:
    """Raises NotFound where there is none."""
    if state is None:
        raise NotFound(f"no such job: {job_id}")
    return state


def _stands_alone(spec: Mapping[str, Any]) -> bool:
    """Whether it can go with strangers: an index in `depends` would point among them."""
    return all(isinstance(dependency, str) for dependency in spec.get("depends", ()))
