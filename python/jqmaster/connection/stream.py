"""Bytes to a server and back: over a socket that blocks in plain calls (`plainly`), by asyncio on an event loop."""

from __future__ import annotations

import asyncio
import math
import select
import socket
import ssl
from typing import Any, TypeAlias

from jqmaster.connection import plainly
from jqmaster.connection.plainly import LONG_S
from jqmaster.connection.url import Address

_PIECE = 1 << 16


async def opened(place: Address | str, context: ssl.SSLContext | None = None) -> Stream:
    """A connection to a host and port, or to the path of a unix socket. It, and its methods, raise OSError, and
    TimeoutError when a `plainly.within` is over."""
    if plainly.is_plain():
        return _Socket(_connected(place, context))
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(plainly.left_s()):
        if isinstance(place, str):
            return (await loop.create_unix_connection(_Flow, place))[1]
        transport, flow = await loop.create_connection(_Flow, *place, ssl=context)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return flow


def _connected(place: Address | str, context: ssl.SSLContext | None) -> socket.socket:
    within_s = plainly.left_s()
    if isinstance(place, str):
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(within_s)
    else:
        connected = socket.create_connection(place, within_s)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    try:
        if isinstance(place, str):
            connected.connect(place)
        elif context is not None:
            return context.wrap_socket(connected, server_hostname=place[0])
    except BaseException:
        connected.close()
        raise
    return connected


class _Socket:
    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._within_s = -1.0

    def _bound(self, within_s: float) -> None:
        # In tenths, so that calls one after the other have the same: setting it is a call of the system.
        within_s = math.ceil(10 * plainly.left_s(within_s)) / 10
        if within_s != self._within_s:
            self._socket.settimeout(within_s)
            self._within_s = within_s

    async def send(self, data: bytes, within_s: float = LONG_S) -> None:
        self._bound(within_s)
        self._socket.sendall(data)

    async def receive(self, within_s: float = LONG_S) -> bytes:
        """Some bytes; none at all when the other side has closed it. Raises TimeoutError also when nothing comes within
        so long."""
        self._bound(within_s)
        return self._socket.recv(_PIECE)

    def is_open(self) -> bool:
        """Whether it can be used again: the other side has not closed it, nor sent what nobody asked for."""
        return not _is_readable(self._socket)

    def close(self) -> None:
        self._socket.close()


class _Flow(asyncio.Protocol):
    """By a protocol: asyncio's streams cost twice as much."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._came = b""
        self._has_ended = False
        self._problem: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._late_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, data: bytes, within_s: float = LONG_S) -> None:
        if self._has_ended:
            raise self._problem or ConnectionResetError("the connection was closed")
        self._transport.write(data)

    async def receive(self, within_s: float = LONG_S) -> bytes:
        if not self._came and not self._has_ended:
            self._waiter = self._loop.create_future()
            self._late_at = self._loop.time() + plainly.left_s(within_s)
            if self._timer is None or self._timer.when() > self._late_at:
                self._watch()
            await self._waiter
        if self._problem is not None:
            raise self._problem
        if not self._came and not self._has_ended:
            raise TimeoutError
        data, self._came = self._came, b""
        return data

    def _watch(self) -> None:
        """One timer, which outlasts many receipts: to make one for each would take a twentieth of a call."""
        if self._timer is not None:
            self._timer.cancel()
        is_late = self._loop.time() >= self._late_at
        self._timer = None if is_late else self._loop.call_at(self._late_at, self._watch)
        if is_late:
            self._wake()

    def is_open(self) -> bool:
        if self._has_ended or self._came or self._transport.is_closing():
            return False
        # The loop may not have had a turn since the other side closed it.
        return not _is_readable(self._transport.get_extra_info("socket"))

    def close(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._came += data
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._problem = error
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _is_readable(connected: Any) -> bool:
    """Whether there is anything to read: of a connection that waits for no answer, its end."""
    if connected.fileno() < 0:
        return True
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([connected.fileno()], [], [], 0)[0])
    poll = select.poll()  # it is asked before each call: `selectors` take ten times as long, and an open file
    poll.register(connected.fileno(), select.POLLIN)
    return bool(poll.poll(0))


Stream: TypeAlias = _Socket | _Flow
"""One connection: `send`, `receive`, `is_open`, `close`."""
