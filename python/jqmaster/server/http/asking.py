"""How handlers ask the engine, for who may ask it; and what follows from what was done."""

from __future__ import annotations

import contextlib
from typing import Any

from jqmaster.engine.calling import contract_of
from jqmaster.engine.durable import Durable
from jqmaster.errors import JQError
from jqmaster.server.http import within
from jqmaster.server.master import Master
from jqmaster.server.message import Identity

# After these, workers that jobs are pushed to may have room.
_MAKE_ROOM = frozenset(("kick", "retry", "discard", "cancel", "worker", "unregister"))


async def ask(master: Master, who: Identity, operation: str, *arguments: bytes, durable: Durable | None = None) -> Any:
    """Run an operation with the script's own arguments, for who may ask for the queues that they name. Raises JQError,
    and 403."""
    await let_in(master, who, operation, *arguments)
    if operation == "enqueue":
        return await master.engine.enqueue_packed(arguments, durable)
    reply = await master.engine.raw(operation, *arguments)
    if operation in _MAKE_ROOM:
        master.dispatch.poke()
    if operation == "worker":
        # Of a worker that was quiet long polls got nothing, and nobody knows that they wait.
        master.waiting.look_again(within.unpacked(arguments[0])["worker"])
    if operation in ("grant", "revoke") and master.keyring is not None:
        with contextlib.suppress(JQError):  # it is looked again, and what was asked for is done
            await master.keyring.look()
    if operation == "bulk" and master.bulks is not None:
        master.bulks.poke()
    return reply


async def let_in(master: Master, who: Identity, operation: str, *arguments: bytes) -> None:
    """Raise 403 unless they may ask for the queues that a call names; for what is asked another way."""
    if who.queues is not None:
        await within.check(master.engine, who, contract_of(operation), arguments)
