"""The record of the system that a namespace is a partition of (docs/protocol.md, section 22)."""

from __future__ import annotations

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Calling, given, pack


class SystemCalls(Calling):
    """For who makes and changes systems, and enqueues into them."""

    async def system(self, record: bytes | None = None, *, after: int | None = None) -> tuple[int, bytes]:
        """Generation and record, as they are then; (0, b"") without one. A ``record`` is kept if it is later than
        what is there; with ``after`` it has to follow the one of that generation.

        Raises Invalid, Version, Conflict when another one is there.
        """
        spec = pack(given(**{"from": after}))
        generation, kept = await self.call("system", spec, *([] if record is None else [record]))
        return int(generation), bytes(kept)

    async def meet(self, *arguments: Argument) -> list[tuple[str, bool]]:
        """Options, then spec and argument of each job, as `enqueue` takes them. For each: who has its key, or what this
        call was answered before, "" where neither is; and whether it was created, behind the one that has the key.
        Of a partition that had the jobs' buckets. Raises Invalid, Outdated when its record is another."""
        return [(replies.text(one), bool(new)) for one, new in replies.pairs(await self.call("meet", *arguments))]
