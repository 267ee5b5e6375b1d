"""`top` on a terminal, and commands that ask there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import jqmaster
from jqmaster.engine.engine import Engine

PATIENCE_S = 60.0


class Terminal:
    """A program on a terminal of so many rows and columns."""

    def __init__(self, rows: int, columns: int, *command: str) -> None:
        self.text = ""
        self.pid, self._handle = pty.fork()
        if self.pid == 0:
            ours = ("JQ_", "COLUMNS", "LINES")  # readline sets the last two for whatever is started later
            kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
            environment = {**kept, "TERM": "xterm", "PYTHONPATH": str(Path(jqmaster.__file__).parents[1])}
            os.execve(sys.executable, [sys.executable, "-m", "jqmaster.cli", *command], environment)
        fcntl.ioctl(self._handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._handle, keys.encode())

    def until(self, wanted: str) -> list[str]:
        """The lines of the first whole picture that has this text, without colours."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            pictures = re.sub(r"\x1b\[[0-9;?]*[A-GI-Za-z]", "", self.text).split("\x1b[H")
            for picture in pictures[1:-1]:  # the last one may be half of it
                if wanted in picture:
                    self.text = ""
                    return [line.rstrip("\r") for line in picture.split("\n")]
            if not self._read():
                break
        raise AssertionError(f"no picture has {wanted!r}: {self.text!r}")

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        ready, _, _ = select.select([self._handle], [], [], PATIENCE_S)
        try:
            piece = os.read(self._handle, 65536) if ready else b""
        except OSError:
            return False
        self.text += piece.decode("utf-8", "replace")
        return bool(piece)


@pytest.fixture
async def filled(engine: Engine) -> Engine:
    for number in range(30):
        await engine.enqueue([({"name": f"kind.{number:02d}"}, b"\xc0")] * (number + 1))
    await engine.register("w1", ["kind.00"])
    return engine


@pytest.fixture
def top(filled: Engine, redis_url: str) -> Iterator[Terminal]:
    place = ("--redis", redis_url, "--namespace", filled.namespace)
    terminal = Terminal(24, 80, "top", *place, "--every", "0.2")
    yield terminal
    if terminal.text is not None:
        try:
            os.kill(terminal.pid, 9)
            os.waitpid(terminal.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def test_it_fits_24_rows_of_80_columns(top: Terminal) -> None:
    lines = top.until("kind.29")
    assert len(lines) == 24 and max(len(line) for line in lines) <= 80, "\n".join(lines)
    assert " JQ unix:" in lines[0] and lines[2].startswith("465 queued")
    assert any(line.startswith("… ") and line.strip().endswith(" more") for line in lines)
    assert any("w1" in line for line in lines)


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 0), ("\n", 1, 30)])
async def test_other_commands_ask_on_a_terminal(
    filled: Engine, redis_url: str, answer: str, code: int, left: int
) -> None:
    place = ("--redis", redis_url, "--namespace", filled.namespace)
    terminal = Terminal(24, 80, "discard", *place, "--queue", "kind.29")
    while "[y/N]" not in terminal.text:
        assert terminal._read(), terminal.text
    assert "30 jobs fit: 30 queued" in terminal.text
    terminal.press(answer)
    assert terminal.end() == code
    [queue] = (await filled.queues(["kind.29"])).documents
    assert queue["queued"] == left
