"""One typed method for each operation of docs/protocol.md, and a raw way for everything else.

By what they are about: `jobs`, `work`, `operation` (limits, schedules and the rest that operators need), `bulk`;
`trends`, `ranking` and `search` are made of others. `made` has those of which the table of operations says all, `calls`
what lies under them.
"""

from __future__ import annotations

from jqmaster.engine.bulk import BulkCalls
from jqmaster.engine.calls import Argument, Caller, Holding, Spec, connect, given, pack
from jqmaster.engine.jobs import JobCalls
from jqmaster.engine.made import MadeCalls
from jqmaster.engine.ranking import RankingCalls
from jqmaster.engine.search import SearchCalls
from jqmaster.engine.trends import TrendCalls
from jqmaster.engine.work import WorkCalls

__all__ = ["Argument", "Engine", "Holding", "Operations", "Spec", "connect", "given", "pack"]


class Operations(MadeCalls, RankingCalls, SearchCalls, JobCalls, WorkCalls, TrendCalls, BulkCalls):
    """A typed method for each operation, whatever carries the calls."""


class Engine(Caller, Operations):
    """The operations of one namespace in Redis; see ``Caller``. ``engine.http`` has them by a master."""

    async def differences(self) -> list[str]:
        """What is set otherwise in some partitions than in the first: nothing, where there is one namespace."""
        return []
