"""What goes wrong with a worker itself: said often enough to be seen, not so often that it hides all else; and none of
it ends a part of the worker."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from jqmaster.connection.wake import backoff_s
from jqmaster.errors import Forbidden, JQError, Unauthorized, Unavailable, Vanished

log = logging.getLogger("jqmaster.worker")

AWAY_EVERY_S = 10.0
REFUSED_EVERY_S = 60.0


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
        is_away = isinstance(error, Unavailable) and not isinstance(error.cause, Forbidden | Unauthorized)
        if not is_away:
            self._refused[what] = str(error)
        # All parts of a worker notice that the other side is away: one line is enough.
        subject, every_s = ("", AWAY_EVERY_S) if is_away else (what, REFUSED_EVERY_S)
        now = time.monotonic()
        if now - self._said_at.get(subject, -every_s) >= every_s:
            self._said_at[subject] = now
            log.log(logging.WARNING if is_away else logging.ERROR, "cannot %s, trying again: %s", what, error)

    def over(self, what: str) -> None:
        """It succeeded."""
        if self._refused.pop(what, None) is not None:
            self._said_at.pop(what, None)


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
