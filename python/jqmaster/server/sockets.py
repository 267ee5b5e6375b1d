"""Sockets that are listened on."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path


def bind_tcp(host: str, port: int, scheme: str = "http") -> tuple[socket.socket, str]:
    """A socket that listens, and the URL that leads there. Raises OSError."""
    is_six = ":" in host
    family, name = (socket.AF_INET6, f"[{host}]") if is_six else (socket.AF_INET, host)
    dualstack = is_six and socket.has_dualstack_ipv6()
    listening = socket.create_server((host, port), family=family, dualstack_ipv6=dualstack)
    return listening, f"{scheme}://{name}:{listening.getsockname()[1]}"


def bind_unix(path: Path) -> socket.socket:
    """A socket that only this user may use; takes over a file nobody listens at any more. Raises OSError."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe, suppress(ConnectionRefusedError):
            probe.connect(str(path))
            raise OSError(0, "another server listens there")
        path.unlink()
    before = os.umask(0o077)
    try:
        return socket.create_server(str(path), family=socket.AF_UNIX)
    finally:
        os.umask(before)
