"""The record of the system that a namespace is a partition of (docs/protocol.md, section 22)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Calling, given, pack


@dataclass(slots=True)
class Room:
    """A registered worker that may get ``free`` more jobs. ``secrets``: with a blank between, and ``key``, as it was
    registered, or empty. ``refused``: names of jobs that it does not know."""

    worker: str
    url: str
    secrets: str
    key: str
    queues: tuple[str, ...]
    refused: tuple[str, ...]
    free: int
    max_jobs: int


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

    async def slots(
        self, jobs: Sequence[tuple[str, str, str, int]] = (), *, limit: int | None = None
    ) -> tuple[list[bool], list[Room]]:
        """For each worker, job of another partition, token and ms: whether that attempt has one of the worker's slots,
        until so much later; with 0 whether it had. And workers with room, ``limit`` in all, but of each pool one
        at least."""
        answers, *told = await self._ask("slots", jobs=list(jobs), **given(limit=limit))
        return [one == 1 for one in answers], [
            _room(*one) for one in zip(*(told[at::5] for at in range(5)), strict=True)
        ]

    async def slots_of(self, worker: str) -> list[tuple[str, str]]:
        """Jobs of other partitions that have slots of a worker, with the tokens of their attempts."""
        reply = await self._ask("slots", worker=worker)
        return [(replies.text(job_id), replies.text(token)) for job_id, token in replies.pairs(reply)]


def _room(worker: bytes, url: bytes, secrets: bytes, key: bytes, document: bytes) -> Room:
    fields = replies.plain_document(document)
    return Room(
        replies.text(worker), replies.text(url), replies.text(secrets), replies.text(key),
        tuple(fields["queues"]), tuple(fields["refused"]), fields["free"], fields["max_jobs"],
    )  # fmt: skip
