"""HTTP/1.1 alone. Hypercorn also takes HTTP/2 without TLS and WebSockets, and has no setting against it.

Nobody needs them here, and both lead around bounds: a connection of HTTP/2 has a hundred requests under way,
whose answers are kept for as long as the client does not take them; a WebSocket is no request that `access`
looks at. A server may ignore that a client wants another protocol (RFC 9110, 7.8), and so this one does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h11
import hypercorn.protocol
from hypercorn.config import Config
from hypercorn.protocol.h11 import H11Protocol

KEEP_ALIVE_S = 75.0  # also for a request's head to come
MOST_HEAD_BYTES = 16 * 1024


def config(listening: int, certificate: Path | None = None, key: Path | None = None) -> Config:
    """Hypercorn's settings for who listens at an open file; with a certificate it is HTTPS."""
    tls: dict[str, Any] = {"certfile": str(certificate), "keyfile": str(key or certificate)} if certificate else {}
    hypercorn.protocol.H11Protocol = _Http1  # type: ignore[attr-defined, assignment] # where each connection looks it up
    return Config.from_mapping(
        bind=[f"fd://{listening}"], backlog=1024, keep_alive_timeout=KEEP_ALIVE_S,
        keep_alive_max_requests=1_000_000, h11_max_incomplete_size=MOST_HEAD_BYTES,
        alpn_protocols=["http/1.1"], loglevel="WARNING", include_server_header=False, **tls,
    )  # fmt: skip


class _Http1(H11Protocol):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.connection = _Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)


class _Connection(h11.Connection):
    def next_event(self) -> Any:
        """As h11's, without what makes Hypercorn change the protocol. A body with two lengths is refused: a proxy may
        go by the other one, and take its end for the next request (RFC 9112, 6.1)."""
        event = super().next_event()
        if not isinstance(event, h11.Request):
            return event
        if event.http_version == b"2.0":
            raise h11.RemoteProtocolError("this is HTTP/2", error_status_hint=505)
        if dict(event.headers).keys() >= {b"content-length", b"transfer-encoding"}:
            raise h11.RemoteProtocolError("its body has two lengths")
        headers = [(name, value) for name, value in event.headers if name != b"upgrade"]
        if len(headers) == len(event.headers):
            return event
        return h11.Request(method=event.method, target=event.target, headers=headers, http_version=event.http_version)
