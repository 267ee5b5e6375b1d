"""Other processes of a run: the master, a bare Quart server, workers; each stopped by its own handle."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from kit.contenders import BENCH

ROOT = BENCH.parent
CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Program:
    """A child process, ended on leaving the ``with``."""

    def __init__(self, *command: str, output: bool = False, driven: bool = False) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
        self.process = subprocess.Popen(
            command,
            cwd=BENCH,
            env=environment,
            text=True,
            stdin=subprocess.PIPE if driven else None,
            stdout=subprocess.PIPE if output or driven else subprocess.DEVNULL,
        )

    def line(self) -> str:
        """The next line it prints."""
        assert self.process.stdout
        text = self.process.stdout.readline()
        if not text:
            raise RuntimeError(f"{self.process.args} ended without an answer")
        return text.strip()

    def cpu_s(self) -> float:
        """CPU time it has used, user and system, in all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_S

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()


class Driver(Program):
    """A program that says it is ready, then does a step for each line it gets. What it says is JSON."""

    def __init__(self, *command: str) -> None:
        super().__init__(*command, driven=True)
        self.ready = self._answer()

    def _answer(self) -> dict[str, Any]:
        while not (line := self.line()).startswith("{"):
            pass  # what a worker prints
        answer: dict[str, Any] = json.loads(line)
        return answer

    def begin(self, *words: str | int) -> None:
        """Have it do a step, and do something else meanwhile; `end` has its answer."""
        assert self.process.stdin
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def end(self) -> dict[str, Any]:
        return self._answer()

    def step(self, *words: str | int) -> dict[str, Any]:
        """`ms` that it took, `cpu_us` that the program used, and what else the step tells."""
        self.begin(*words)
        return self.end()


def library(url: str) -> Driver:
    """The Python library at this URL; its steps: ``tools/library.py``."""
    return Driver(sys.executable, "tools/library.py", url)


def python(*arguments: str, output: bool = False) -> Program:
    return Program(sys.executable, *arguments, output=output)


def start_master(redis_socket: str, port: int) -> Program:
    """``jqmaster serve`` on a Redis of ours, once it answers."""
    command_line = "import sys; from jqmaster.cli import main; sys.exit(main())"
    master = python("-c", command_line, "serve", "--redis", f"unix://{redis_socket}", "--port", str(port))
    wait_for_http(master, port, "GET", "/health")
    return master


def wait_for_http(program: Program, port: int, method: str, path: str, limit_s: float = 20.0) -> None:
    give_up = time.monotonic() + limit_s
    while time.monotonic() < give_up:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request(method, path, body=b"")
            connection.getresponse().read()
            connection.close()
            return
        except OSError:
            if program.process.poll() is not None:
                break
            time.sleep(0.05)
    program.__exit__(None, None, None)
    raise RuntimeError(f"{program.process.args} does not answer on port {port}")
