"""Masters and workers as real processes, for tests that stop and kill them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import jqmaster

TESTS = Path(__file__).parent
START_S = 60.0  # a busy machine takes its time
NONE: Mapping[str, str] = {}


class Process:
    """`python -m module arguments...`. Leaving the `with` block kills what still runs, and what that has started."""

    def __init__(
        self, *command: str, ready: str = "", folder: Path | None = None, variables: Mapping[str, str] = NONE
    ) -> None:
        handle, name = tempfile.mkstemp(prefix="jq-", suffix=".log")
        self._log = Path(name)
        self._text = ""
        paths = [str(Path(jqmaster.__file__).parents[1]), str(TESTS), str(TESTS.with_name("worker"))]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("JQ_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", *command], stdin=subprocess.DEVNULL, stdout=handle, stderr=handle,
            env={**kept, "PYTHONPATH": os.pathsep.join(paths), **variables}, start_new_session=True, cwd=folder,
        )  # fmt: skip
        os.close(handle)
        self.line = self._await(ready) if ready else ""

    @property
    def text(self) -> str:
        """All it has printed so far."""
        return self._log.read_text(errors="replace") if self._log.exists() else self._text

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def _await(self, ready: str) -> str:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            for line in self.text.split("\n")[:-1]:
                if ready in line:
                    return line
            time.sleep(0.01)
        self.close()
        raise RuntimeError(f"did not become ready:\n{self.text}")

    def signal(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait()

    def ends(self, timeout_s: float = START_S) -> int:
        """Its exit code."""
        return self._process.wait(timeout_s)

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._text = self.text
        self._log.unlink(missing_ok=True)


class MasterProcess(Process):
    """`jqmaster serve`. `url` and `redis_url` as it says itself."""

    def __init__(self, *options: str, port: int = 0) -> None:
        super().__init__("jqmaster.cli", "serve", "--port", str(port), *options, ready="Redis ")
        self.redis_url = self.line.split()[1]
        self.url = self.text.split("\n")[0].split()[-1]
        self.port = int(self.url.rpartition(":")[2])
