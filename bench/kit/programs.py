"""Other processes of a run, each stopped by its own handle: the server, drivers of job queues."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

SLOTS = 32  # of a worker
BENCH = Path(__file__).resolve().parents[1]
ROOT = BENCH.parent
CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Program:
    """A child process, ended on leaving the ``with``."""

    def __init__(self, *command: str, driven: bool = False, checkout: Path | None = None) -> None:
        environment = {**os.environ, "PYTHONPATH": str((checkout or ROOT) / "python")}
        self.process = subprocess.Popen(
            command,
            cwd=BENCH,
            env=environment,
            text=True,
            stdin=subprocess.PIPE if driven else None,
            stdout=subprocess.PIPE if driven else subprocess.DEVNULL,
        )

    def cpu_s(self) -> float:
        """CPU time it has used, user and system, in all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_S

    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1000

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

    def __init__(self, *command: str, checkout: Path | None = None) -> None:
        super().__init__(*command, driven=True, checkout=checkout)
        self.ready = self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("{"):  # and not what a worker prints
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise RuntimeError(f"{self.process.args} ended without an answer")

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


def driver(name: str, path: str, *more: str, python: str = sys.executable, checkout: Path | None = None) -> Driver:
    """`drivers/<name>` on the server with this socket."""
    return Driver(
        "node" if name.endswith(".js") else python, f"drivers/{name}", path, str(SLOTS), *more, checkout=checkout
    )


@contextmanager
def jq_server(path: str, checkout: Path | None = None) -> Iterator[tuple[Program, int]]:
    """`jqmaster serve` on the Redis with this socket, and its port."""
    port = free_port()
    code = "import sys; from jqmaster.cli import main; sys.exit(main())"
    serve = ("serve", "--redis", f"unix://{path}", "--port", str(port))
    with Program(sys.executable, "-c", code, *serve, checkout=checkout) as server:
        wait_for_http(server, port)
        yield server, port


def wait_for_http(server: Program, port: int, limit_s: float = 20.0) -> None:
    """Until it answers anything."""
    give_up = time.monotonic() + limit_s
    while time.monotonic() < give_up and server.process.poll() is None:
        with suppress(OSError):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/health")
            connection.getresponse().read()
            connection.close()
            return
        time.sleep(0.05)
    raise RuntimeError(f"{server.process.args} does not answer on port {port}")
