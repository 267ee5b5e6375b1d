"""How long a long poll may take."""

from __future__ import annotations

import time

from jqmaster.client.asks import POLL_S


def poll_s(deadline: float | None) -> float:
    """Seconds for the next poll, if all must be over by `deadline` (of the monotonic clock)."""
    return POLL_S if deadline is None else max(0.0, min(POLL_S, deadline - time.monotonic()))
