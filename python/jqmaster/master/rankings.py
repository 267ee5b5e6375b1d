"""What is known of all queues, kept for all who ask for a moment: the longer a look takes, the longer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from jqmaster.connection.together import Shared
from jqmaster.engine.engine import Operations
from jqmaster.engine.ranking import Looked

EVERY_S = 2.0
_REST = 20  # times as long as it took
_MOST_REST_S = 60.0
_MOST_LOOK_S = 20.0
_MOST_KEPT = 4  # for different numbers of minutes


@dataclass
class _Known:
    looking: Shared[Looked]
    found: Looked | None = None
    at: float = 0.0
    until: float = 0.0


@dataclass
class Rankings:
    """Looks at the queues of a namespace for those who ask. Nothing to start."""

    engine: Operations
    _known: dict[int, _Known] = field(default_factory=dict)

    async def look(self, minutes: int) -> tuple[Looked, int]:
        """The queues, and how old that is in ms. Raises what the engine does, and Unavailable when that takes long."""
        known = self._known.pop(minutes, None) or self._new(minutes)
        if known.found is None or time.monotonic() >= known.until:
            await known.looking.get(_MOST_LOOK_S)
        self._known[minutes] = known
        while len(self._known) > _MOST_KEPT:
            del self._known[next(iter(self._known))]
        assert known.found is not None
        return known.found, round((time.monotonic() - known.at) * 1000)

    def _new(self, minutes: int) -> _Known:
        async def look() -> Looked:
            known.at = began = time.monotonic()
            known.found = await self.engine.look_at_queues(minutes)
            took = time.monotonic() - began
            known.until = began + took + min(max(EVERY_S - 0.1, took * _REST), _MOST_REST_S)
            return known.found

        known = _Known(Shared(look))
        return known
