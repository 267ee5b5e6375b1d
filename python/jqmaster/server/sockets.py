"""Sockets to listen on."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from pathlib import Path


def remove(path: str) -> None:
    """Of a socket's file, that may be gone."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def bind_tcp(host: str, port: int, scheme: str = "http") -> tuple[socket.socket, str]:
    """A socket to listen on, and the URL that leads there. Raises OSError."""
    family, name = (socket.AF_INET6, f"[{host}]") if ":" in host else (socket.AF_INET, host)
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound, f"{scheme}://{name}:{bound.getsockname()[1]}"


def bind_unix(path: Path) -> socket.socket:
    """A listening place that only this user may use; takes over a socket file nobody listens on any more."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(ConnectionRefusedError):
                probe.connect(str(path))
                raise OSError(0, "another server listens there")
            path.unlink()
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o077)
    try:
        bound.bind(str(path))
    except BaseException:
        bound.close()
        raise
    finally:
        os.umask(before)
    return bound
