"""A private redis-server on a unix socket, stopped by its own process handle."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from kit.wire import Wire

SETTINGS = ["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning"]


def end_on_termination() -> None:
    """Let SIGTERM (timeout, kill) unwind the program, so that it stops the servers that it started."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


class Server:
    """Starts redis-server; with ``prefix`` under another program, such as valgrind."""

    def __init__(self, prefix: list[str] | None = None, settings: list[str] | None = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="bench-redis-"))
        self.path = str(self.directory / "redis.sock")
        command = [*(prefix or []), "redis-server", "--unixsocket", self.path, "--dir", str(self.directory)]
        self.log = (self.directory / "log").open("wb")
        self.process = subprocess.Popen(
            [*command, *SETTINGS, *(settings or [])], cwd=self.directory, stdout=self.log, stderr=self.log
        )
        self._wait_until_it_answers()

    def _wait_until_it_answers(self, limit_s: float = 60.0) -> None:
        give_up = time.monotonic() + limit_s
        while True:
            try:
                wire = Wire(self.path)
                wire.call("PING")
                wire.close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > give_up:
                    log = (self.directory / "log").read_text(errors="replace")
                    self.stop()
                    raise RuntimeError(f"redis-server did not start:\n{log}") from None
                time.sleep(0.02)

    def wire(self) -> Wire:
        return Wire(self.path)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
