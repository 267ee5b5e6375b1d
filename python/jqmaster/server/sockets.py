"""Sockets that are listened on."""

from __future__ import annotations

import socket


def bind_tcp(host: str, port: int, scheme: str = "http") -> tuple[socket.socket, str]:
    """A socket that listens, and the URL that leads there. Raises OSError."""
    is_six = ":" in host
    family, name = (socket.AF_INET6, f"[{host}]") if is_six else (socket.AF_INET, host)
    dualstack = is_six and socket.has_dualstack_ipv6()
    listening = socket.create_server((host, port), family=family, dualstack_ipv6=dualstack)
    return listening, f"{scheme}://{name}:{listening.getsockname()[1]}"
