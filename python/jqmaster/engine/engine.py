"""All operations of docs/operations.md, whatever carries the calls; and those of one namespace in Redis."""

from __future__ import annotations

from jqmaster.engine.bulk import BulkCalls
from jqmaster.engine.calling import Argument, Spec, given, pack
from jqmaster.engine.calls import Caller, connect
from jqmaster.engine.work import Holding, WorkCalls

__all__ = ["Argument", "Engine", "Holding", "Operations", "Spec", "connect", "given", "pack"]


class Operations(BulkCalls, WorkCalls):
    """A method for each operation; and reads that are made of several."""


class Engine(Caller, Operations):
    """The operations of one namespace in Redis; see ``Caller``. ``engine.http`` has them by a server."""

    async def differences(self) -> list[str]:
        """What is set otherwise in some partitions than in the first: nothing, where there is one namespace."""
        return []
