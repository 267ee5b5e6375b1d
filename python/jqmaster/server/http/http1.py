"""HTTP/1.1 alone. Hypercorn also takes HTTP/2 without TLS and WebSockets, and has no setting against it.

Nobody needs them here, and both lead around bounds: a connection of HTTP/2 has a hundred requests under way,
whose answers are kept for as long as the client does not take them; a WebSocket is no request that `foreign`
looks at. A server may ignore that a client wants another protocol (RFC 9110, 7.8), and so this one does.
"""

from __future__ import annotations

import h11
import hypercorn.config
import hypercorn.protocol
from hypercorn.protocol.h11 import H11Protocol

KEEP_ALIVE_S = 75.0  # also for a request's head to come
KEEP_ALIVE_REQUESTS = 1_000_000
MOST_HEAD_BYTES = 16 * 1024
BACKLOG = 1024


def config(listening: int) -> hypercorn.config.Config:
    """Hypercorn's settings for a master that listens at an open file."""
    hypercorn.protocol.H11Protocol = _Http1  # type: ignore[attr-defined] # where each connection looks it up
    config = hypercorn.config.Config()
    config.bind = [f"fd://{listening}"]
    config.keep_alive_timeout = KEEP_ALIVE_S
    config.keep_alive_max_requests = KEEP_ALIVE_REQUESTS
    config.h11_max_incomplete_size = MOST_HEAD_BYTES
    config.backlog = BACKLOG
    config.loglevel = "WARNING"
    config.include_server_header = False
    return config


class _Http1(H11Protocol):
    async def _check_protocol(self, event: h11.Request) -> None:
        """HTTP/2 begins here, elsewhere."""

    async def _create_stream(self, request: h11.Request) -> None:
        if any(name == b"upgrade" for name, _ in request.headers):
            kept = [(name, value) for name, value in request.headers if name != b"upgrade"]
            request = h11.Request(
                method=request.method, target=request.target, headers=kept, http_version=request.http_version
            )
        await super()._create_stream(request)
