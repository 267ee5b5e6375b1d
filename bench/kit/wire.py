"""A blocking RESP connection that costs next to nothing, so that Redis is what gets measured."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import hiredis

Command = bytes
"""A whole command as it goes over the wire, packed before anything is measured."""

OPERATIONS = ("fcall", "evalsha")
"""Commands that call operations, one for each form."""


def pack(*command: str | bytes | int | float) -> Command:
    packed: bytes = hiredis.pack_command(command)
    return packed


INFO = pack("INFO", "cpu")


def fields(info: bytes) -> dict[str, str]:
    return dict(line.split(":", 1) for line in info.decode().splitlines() if ":" in line)


def cpu_us(info: bytes) -> float:
    """Of an answer to ``INFO``."""
    found = fields(info)
    return (float(found["used_cpu_user"]) + float(found["used_cpu_sys"])) * 1e6


class Wire:
    """One connection over a unix socket. Error replies are raised as ``hiredis.ReplyError``."""

    def __init__(self, path: str, timeout_s: float = 300.0) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout_s)
        self.socket.connect(path)
        self.reader = hiredis.Reader(notEnoughData=Ellipsis)

    def close(self) -> None:
        self.socket.close()

    def _read(self) -> Any:
        while (reply := self.reader.gets()) is Ellipsis:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("Redis closed the connection")
            self.reader.feed(data)
        if isinstance(reply, hiredis.ReplyError):
            raise reply
        return reply

    def call(self, *command: str | bytes | int | float) -> Any:
        return self.send(pack(*command))

    def send(self, packed: Command) -> Any:
        self.socket.sendall(packed)
        return self._read()

    def one_by_one(self, commands: Sequence[Command]) -> list[Any]:
        return [self.send(command) for command in commands]

    def pipelined(self, commands: Sequence[Command], depth: int = 100) -> list[Any]:
        """Send ``depth`` commands at a time, then read their replies."""
        replies = []
        for start in range(0, len(commands), depth):
            part = commands[start : start + depth]
            self.socket.sendall(b"".join(part))
            replies += [self._read() for _ in part]
        return replies

    def info(self, section: str) -> dict[str, str]:
        return fields(self.call("INFO", section))

    def cpu_us(self) -> float:
        """CPU time the server has used so far, user and system, in microseconds."""
        return cpu_us(self.send(INFO))

    def used_memory(self) -> int:
        return int(self.info("memory")["used_memory"])
