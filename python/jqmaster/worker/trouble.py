"""What goes wrong with a worker itself: said often enough to be seen, not so often that it hides all else; and none of
it ends a part of the worker."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from jqmaster.connection.wake import backoff_s
from jqmaster.errors import Forbidden, Internal, JQError, TooFast, Unauthorized, Unavailable, Vanished

T = TypeVar("T")

log = logging.getLogger("jqmaster.worker")

AWAY = (Unavailable, TooFast, Internal)
PASSES = (*AWAY, Unauthorized, Forbidden)
"""Errors that say nothing of what was said: it is said again, to the next master. Rights may be put right."""
AWAY_EVERY_S = 10.0
REFUSED_EVERY_S = 60.0
INTERNALS = 4  # so often a master, or a script, may fail over the same before that counts as an answer


class Trouble:
    """Of one worker. Its parts say what they `met`, and when that is `over`; each goes on trying meanwhile."""

    def __init__(self) -> None:
        self._refused: dict[str, str] = {}  # by what a part tries to do: why it may not
        self._said_at: dict[str, float] = {}

    @property
    def why(self) -> str | None:
        """Why the worker does not do its work, though the other side answers; None if it does."""
        return next((f"cannot {what}: {why}" for what, why in self._refused.items()), None)

    def met(self, what: str, error: JQError) -> None:
        """`what`, such as "get jobs", failed and is tried again. A refusal lasts until somebody mends it: ERROR."""
        if isinstance(error, Vanished):  # which was said once, and lasts
            return
        # All parts of a worker notice that the other side is away: one line is enough.
        subject, every_s, level = "", AWAY_EVERY_S, logging.WARNING
        if not isinstance(error, AWAY):
            self._refused[what] = str(error)
            subject, every_s, level = what, REFUSED_EVERY_S, logging.ERROR
        now = time.monotonic()
        if now - self._said_at.get(subject, -every_s) >= every_s:
            self._said_at[subject] = now
            log.log(level, "cannot %s, trying again: %s", what, error)

    def over(self, what: str) -> None:
        """It succeeded."""
        if self._refused.pop(what, None) is not None:
            self._said_at.pop(what, None)

    async def until_heard(self, what: str, say: Callable[[], Awaitable[T]]) -> T:
        """The answer to what `say` says, again and again. Raises JQError where that is refused."""
        failures = 0
        while True:
            try:
                answer = await say()
            except PASSES as error:
                if isinstance(error, Internal) and failures >= INTERNALS:
                    raise
                self.met(what, error)
            else:
                self.over(what)
                return answer
            await asyncio.sleep(backoff_s(failures))
            failures += 1


async def lasting(name: str, part: Callable[[], Awaitable[None]]) -> None:
    """Run a part of the worker until it returns or is cancelled. An error nobody foresaw does not end it: it is told,
    and the part begins again."""
    failures = 0
    task = asyncio.current_task()
    while True:
        try:
            return await part()
        except asyncio.CancelledError:
            if task is None or task.cancelling():
                raise
            log.error("the worker's %s was cancelled from outside, restarting it", name)
        except Exception:
            log.exception("the worker's %s failed, restarting it", name)
        await asyncio.sleep(backoff_s(failures))
        failures += 1
