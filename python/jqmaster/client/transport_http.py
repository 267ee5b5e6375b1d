"""What the library asks beside the operations, by way of JQ masters."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from jqmaster.client.transport import Transport
from jqmaster.connection.plainly import is_plain
from jqmaster.engine.http import HttpEngine
from jqmaster.engine.replies import document

MOST_POLL_S = 30.0
MOST_POLLS = 256  # connections for those who wait; more take turns, none for long


class HttpTransport(Transport):
    """Asks the first of `urls`; when it does not answer, the next one from then on."""

    def __init__(self, urls: Sequence[str], key: str | None, wait_s: float) -> None:
        self.engine: HttpEngine = HttpEngine(urls, key, wait_s)
        self._wait_s = wait_s
        self._polls = asyncio.Semaphore(MOST_POLLS)
        self._polling = 0

    async def ended(self, job_id: str, timeout_s: float) -> str:
        if is_plain():
            return await self._poll(job_id, min(timeout_s, MOST_POLL_S))
        # With very many who wait each polls shortly, so that all have their turn.
        self._polling += 1
        most_s = MOST_POLL_S if self._polling <= MOST_POLLS else 1.0
        try:
            async with self._polls:
                return await self._poll(job_id, min(timeout_s, most_s))
        finally:
            self._polling -= 1

    async def _poll(self, job_id: str, timeout_s: float) -> str:
        poll_s = round(max(0.0, timeout_s), 3)
        path = f"/job/{quote(job_id, safe='')}/polling?timeout={poll_s}"
        answer = await self.engine.send("GET", path, timeout_s=poll_s + self._wait_s)
        return "waiting" if answer.status == 408 else str(document(answer.body)["status"])

    async def import_records(self, records: Iterable[bytes], namespace: str) -> int:
        raise ValueError('an import is made straight on Redis: JQ("redis://…")')

    async def close(self) -> None:
        await self.engine.close()
