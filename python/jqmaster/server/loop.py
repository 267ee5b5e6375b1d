"""The event loop of a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import uvloop

LINGER_S = 2.0


class Loop(uvloop.Loop):
    """Servers made in this loop let go of connections that their clients have closed. Hypercorn would keep them for as
    long as idle ones, and with them the picks that wait there."""

    async def create_server(self, protocol_factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        def incoming() -> Any:
            protocol = protocol_factory()
            made, received = protocol.connection_made, protocol.eof_received

            def connection_made(transport: Any) -> None:
                def at_end() -> Any:
                    # An answer may be under way to a client that says no more and still listens.
                    self.call_later(LINGER_S, transport.close)
                    return received()

                protocol.eof_received = at_end
                made(transport)

            protocol.connection_made = connection_made
            return protocol

        return await super().create_server(incoming, *args, **options)
