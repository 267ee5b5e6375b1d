"""How a job stands, told as it changes until it has ended."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from jqmaster.connection.plainly import pause
from jqmaster.connection.wake import backoff_s
from jqmaster.engine.ended import ENDED
from jqmaster.engine.replies import Document
from jqmaster.errors import Unavailable

if TYPE_CHECKING:
    from jqmaster.client.transport import Transport


class State(NamedTuple):
    """`status`: queued, scheduled, blocked, running, retrying, done, error, cancelled or skipped; `attempt`: 0 before
    the first; `progress` and `message` as the function said last (`progress`)."""

    status: str
    attempt: int
    progress: float | None
    message: str | None

    @property
    def ended(self) -> bool:
        """Whether this is the last one."""
        return self.status in ENDED


async def states(
    transport: Transport, job_id: str, look: Callable[[], Awaitable[Document]], away_s: float
) -> AsyncIterator[State]:
    """How it stands now, and each time that this is found to be different. The other side may be away for `away_s`
    seconds. Raises what `look` raises."""
    last = await _state(look, away_s)
    yield last
    if last.ended:
        return
    async with aclosing(transport.changes(job_id)) as changes:
        async for _ in changes:
            # What is heard only says when to look: whatever was missed meanwhile is in what is found.
            state = await _state(look, away_s)
            if state != last:
                last = state
                yield state
            if state.ended:
                return


async def _state(look: Callable[[], Awaitable[Document]], away_s: float) -> State:
    failures, until = 0, time.monotonic() + away_s
    while True:
        try:
            document = await look()
        except Unavailable:
            if time.monotonic() >= until:
                raise
            await pause(backoff_s(failures))
            failures += 1
        else:
            return State(
                document["status"], document["attempt"], document.get("progress"), document.get("progress_message")
            )
