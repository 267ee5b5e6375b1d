"""Operations for what runs between the partitions of a system (docs/protocol.md, sections 7 and 22): who makes and
changes it, couriers of its letters, balancers of its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jqmaster.engine import replies
from jqmaster.engine.calls import Argument, Calling, given, pack
from jqmaster.engine.replies import Document


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


class Letters(NamedTuple):
    """``next_ms``: when there is more, -1 for not by time alone. ``letters``: (number of a partition, letter) each."""

    next_ms: int
    letters: list[tuple[int, bytes]]


class Shares(NamedTuple):
    """What a partition tells. ``moved``: shares were told on another server, none on this one yet. ``settled``: all
    jobs that run are counted. ``constraints``: a document of each that is shared."""

    now_ms: int
    moved: bool
    settled: bool
    constraints: list[Document]


class Balance(NamedTuple):
    """``epoch`` is None while another one balances, for ``left_ms`` more."""

    left_ms: int
    epoch: str | None
    noted: bytes


class SystemCalls(Calling):
    """For who makes and changes systems, enqueues into them, carries their letters, shares out their limits."""

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

    # --- letters ---

    async def outbox(
        self,
        courier: str,
        answered: Sequence[tuple[bytes, str]] = (),
        *,
        count: int | None = None,
        wait: int | None = None,
        partitions_left_out: Sequence[int] = (),
    ) -> Letters:
        """Up to ``count`` letters, 100 unless told, and bring back what was ``answered`` to earlier ones.

        ``wait``: for how many milliseconds this courier sleeps if there is none. Raises Invalid, Version.
        """
        spec = given(courier=courier, count=count, wait=wait)
        if partitions_left_out:
            spec["except"] = list(partitions_left_out)
        arguments = [part for one in answered for part in one]
        next_ms, *found = await self.call("outbox", pack(spec), *arguments)
        return Letters(int(next_ms), [(int(to), bytes(letter)) for to, letter in replies.pairs(found)])

    async def deliver(self, letters: Sequence[bytes]) -> list[str]:
        """Apply letters, 1 to 100 of them; the answer to each, which its sender is to get. Raises Invalid."""
        return [replies.text(one) for one in await self.call("deliver", *letters)]

    # --- limits that partitions share ---

    async def share(
        self,
        epoch: str,
        turn: int,
        *,
        until_ms: int | None = None,
        shares: Mapping[str, Sequence[str | int]] | None = None,
    ) -> Shares:
        """Look at what is in use; with the last two set all shares, ``{id: (definition, concurrency, rate)}``.

        Raises Conflict when a later balancer was there, or this one has not looked on this server before.
        """
        spec = given(epoch=epoch, turn=turn, until_ms=until_ms, shares=shares)
        now_ms, moved, settled, *documents = await self.call("share", pack(spec))
        return Shares(now_ms, bool(moved), bool(settled), [replies.plain_document(one) for one in documents])

    async def balance(
        self,
        lease_ms: int,
        epoch: str | None = None,
        turn: int | None = None,
        noted: bytes | None = None,
        *,
        generation: int | None = None,
    ) -> Balance:
        """Ask to balance for so long; with an epoch note something, and go on. At partition 0 alone. ``generation``: of
        the record by which the caller knows all partitions.

        Raises Conflict when another one has begun since, or another server knows nothing of it, Outdated where the
        record is a later one.
        """
        spec = pack(given(lease_ms=lease_ms, epoch=epoch, turn=turn, generation=generation))
        left_ms, *more = await self.call("balance", spec, *([] if noted is None else [noted]))
        return Balance(left_ms, replies.text(more[0]) if more else None, more[1] if more else b"")


def _room(worker: bytes, url: bytes, secrets: bytes, key: bytes, document: bytes) -> Room:
    fields = replies.plain_document(document)
    return Room(
        replies.text(worker), replies.text(url), replies.text(secrets), replies.text(key),
        tuple(fields["queues"]), tuple(fields["refused"]), fields["free"], fields["max_jobs"],
    )  # fmt: skip
