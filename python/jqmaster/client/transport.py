"""What the library asks beside the operations: by the scripts in Redis, or by a master."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from typing import Any

from jqmaster.cluster.opening import Opened
from jqmaster.connection import plainly
from jqmaster.connection.endpoint import endpoint_of
from jqmaster.connection.subscriptions import listened
from jqmaster.engine.ended import ENDED, glance
from jqmaster.engine.engine import Operations, pack
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
        # An index in `depends` would point among strangers.
        if not spec or request is not None or any(not isinstance(job, str) for job in spec.get("depends", ())):
            return await self.engine.enqueue(jobs, request=request)
        job_id, created = await self._enqueue(pack(spec, "jobs[0]"), argument)
        return [Enqueued(job_id.decode(), bool(created))]

    async def ended(self, job_id: str, timeout_s: float) -> str:
        """The state once it has ended, however it did, or after so long. Raises NotFound."""
        raise NotImplementedError

    async def import_records(self, records: Iterable[bytes], namespace: str) -> int:
        """Write such records into another namespace; how many keys."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the connections; bounded."""

    async def _enqueue(self, spec: bytes, argument: bytes) -> Any:
        return await self.engine.raw("enqueue", spec, argument)


class RedisTransport(Transport):
    """By the scripts, with no master in between. In an event loop those who ask at the same time share calls, and one
    subscription; of plain calls each who waits listens on a connection of their own."""

    def __init__(self, url: str, namespace: str, **how: Any) -> None:
        """`how`: of `Engine`."""
        self._opened = Opened(url, namespace, **how)
        self.engine = self._engine = self._opened.engine
        self._enqueuing = self._ended = None
        if not plainly.is_plain():
            self._enqueuing, self._ended = self._opened.enqueuing(), self._opened.ended()

    async def ended(self, job_id: str, timeout_s: float) -> str:
        if self._ended is not None:
            state = await self._ended.wait(job_id.encode(), timeout_s)
        elif timeout_s <= 0:
            state = await glance(self._engine, job_id.encode())
        else:
            state = await self._listen(job_id, time.monotonic() + timeout_s)
        if state is None:
            raise NotFound(f"no such job: {job_id}")
        return state

    async def import_records(self, records: Iterable[bytes], namespace: str) -> int:
        from jqmaster.engine.copying import import_records

        return await import_records(self._engine.redis, namespace, records, form=self._engine.form)

    async def close(self) -> None:
        try:
            if self._ended is not None:
                await self._ended.stop()
        finally:
            await self._opened.close()

    async def _enqueue(self, spec: bytes, argument: bytes) -> Any:
        if self._enqueuing is None:
            return await super()._enqueue(spec, argument)
        return await self._enqueuing.get(spec, argument)

    async def _listen(self, job_id: str, until: float) -> str | None:
        """As `Ended.wait`, for one who blocks."""
        state = await self._look(job_id)
        if state is None or state in ENDED:
            return state
        engine = self._opened.engine_of(job_id)
        heard = listened(endpoint_of(engine.redis), f"{engine.namespace}:ended", until)
        async with contextlib.aclosing(heard):
            async for message in heard:
                if not message:
                    state = await self._look(job_id)
                elif message.startswith(job_id.encode() + b" "):
                    state = message.partition(b" ")[2].decode()
                if state is None or state in ENDED:
                    return state
        # Nobody may be told that a job goes on which has ended, only because nothing was heard of it.
        return await self._look(job_id)

    async def _look(self, job_id: str) -> str | None:
        [state] = await self.engine.raw("watch", job_id)
        return None if state is None else bytes(state).decode()
