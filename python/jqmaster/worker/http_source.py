"""A source of jobs at a JQ server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jqmaster.engine.http import HttpEngine
from jqmaster.engine.replies import Job
from jqmaster.worker.sources import POLL_S, EngineSource


class HttpSource(EngineSource):
    """Talks to a JQ master. With several URLs the next one is tried when one does not answer."""

    def __init__(self, urls: Sequence[str], queues: Sequence[str], *, key: str | None = None, **options: Any) -> None:
        self._http = HttpEngine(urls, key)
        super().__init__(self._http, queues, **options)

    async def stop(self) -> None:
        await super().stop()
        await self._http.close()

    async def _wait(self, spec: dict[str, Any]) -> list[Job]:
        return (await self._http.pick_waiting(POLL_S, **spec)).jobs
