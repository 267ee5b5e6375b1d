"""The event loop of a server, and how many connections it may have."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections.abc import Callable
from typing import Any

import uvloop

LINGER_S = 2.0


def raise_limit() -> None:
    """As many open files as this user may have. Processes that this one starts have the same limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems say more than they give
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Loop(uvloop.Loop):
    """Servers made in this loop let go of connections that their clients have closed. Hypercorn would keep them for as
    long as idle ones, and with them the picks that wait there."""

    async def create_server(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], *args: Any, **options: Any
    ) -> Any:
        return await super().create_server(lambda: _Connection(protocol_factory()), *args, **options)


class _Connection(asyncio.Protocol):
    """One that has just been made: it gets its real protocol."""

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol

    def connection_made(self, transport: Any) -> None:
        received = self._protocol.eof_received

        def at_end() -> Any:
            # An answer may be under way to a client that says no more and still listens.
            asyncio.get_running_loop().call_later(LINGER_S, transport.close)
            return received()

        self._protocol.eof_received = at_end
        transport.set_protocol(self._protocol)
        self._protocol.connection_made(transport)
