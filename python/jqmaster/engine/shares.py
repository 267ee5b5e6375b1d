"""Limits that the partitions of a system share (docs/protocol.md, section 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jqmaster.engine import replies
from jqmaster.engine.calls import Calling, given, pack
from jqmaster.engine.replies import Document


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


class ShareCalls(Calling):
    """For who shares limits out among partitions."""

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
