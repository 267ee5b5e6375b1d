"""A source of jobs at a JQ server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from jqmaster.connection.wake import end
from jqmaster.engine.http import Answer, HttpEngine, checked
from jqmaster.engine.replies import Job
from jqmaster.errors import JQError, TooFast, Unavailable
from jqmaster.worker.sources import POLL_S, STOP_TIMEOUT_S, EngineSource


class HttpSource(EngineSource):
    """Talks to a JQ master. With several URLs the next one is tried when one does not answer."""

    def __init__(self, urls: Sequence[str], queues: Sequence[str], *, key: str | None = None, **options: Any) -> None:
        self._http = _Insisting(urls, key)
        super().__init__(self._http, queues, **options)
        self._background: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        if self._background:
            _, late = await asyncio.wait(self._background, timeout=STOP_TIMEOUT_S)
            await end(late)
        await super().stop()
        await self._http.close()

    async def _wait(self, spec: dict[str, Any]) -> list[Job]:
        try:
            return (await self._http.pick_waiting(POLL_S, **spec)).jobs
        except asyncio.CancelledError:
            task = asyncio.create_task(self._take_back(spec), name="give back")
            self._background.add(task)
            task.add_done_callback(self._background.discard)
            raise


class _Insisting(HttpEngine):
    """What fails within a master is no answer for a worker: it says so again, to the next one. Nor is that its key is
    refused: as long as its leases last it goes on trying, as the key may be put right."""

    async def send(self, *arguments: Any, **more: Any) -> Answer:
        answer = await super().send(*arguments, **more)
        try:
            checked(answer.status, answer.content)
        except Unavailable:
            raise
        except JQError as error:
            if answer.status >= 500 or answer.status in (401, 403) or isinstance(error, TooFast):
                raise Unavailable(str(error), error) from error
        return answer
