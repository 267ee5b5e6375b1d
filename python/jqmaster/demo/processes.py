"""The demo's processes: started, watched, and stopped by their ids, whatever happens."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from jqmaster.errors import JQError

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 12.0
_SHOWN_PROBLEMS = 20


class DidNotStart(Exception):
    """A process ended, or said nothing, instead of becoming ready."""


class Processes:
    """Processes by name, each with a log file. Leaving the `with` block stops all that still run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *arguments: str, ready: str) -> str:
        """Run `python -m arguments...` and return the first line it prints that contains `ready`."""
        command = [sys.executable, "-m", *arguments]
        log = self._directory / f"{name}.log"
        with open(log, "wb") as output:
            # Sessions of their own, so that Ctrl-C reaches the demo alone and it can stop them in order.
            streams: Any = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(command, **streams, start_new_session=True, env=_environment())
        self._running[name] = process
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for line in log.read_text(errors="replace").split("\n")[:-1]:
                if ready in line:
                    return line
            if process.poll() is not None:
                break
            time.sleep(0.02)
        raise DidNotStart(f"{name} did not start:\n{log.read_text(errors='replace')[-2000:]}")

    def kill(self, name: str) -> int:
        """kill -9; returns the process id it had."""
        process = self._running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()
        return process.pid

    def stop(self, *names: str) -> list[str]:
        """SIGTERM to all at once, SIGKILL to those that do not end in time; what went wrong."""
        problems = []
        stopping = {name: self._running.pop(name) for name in names if name in self._running}
        for process in stopping.values():
            process.terminate()
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for name, process in stopping.items():
            try:
                code = process.wait(max(0.1, deadline - time.monotonic()))
                if code != 0:
                    problems.append(f"{name} ended with exit code {code}: {self._tail(name)}")
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                problems.append(f"{name} did not stop within {STOP_TIMEOUT_S:.0f} s")
        return problems

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        # The master goes last: workers tell it what they did.
        names = list(self._running)
        self.stop(*(name for name in names if name != "master"))
        self.stop(*names)

    def _tail(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(errors="replace")[-500:]


def run_show(show: Callable[[Path, Processes], Coroutine[Any, Any, bool]]) -> int:
    """Run what a demo shows, in a directory of its own: 0 if everything was as it should be."""
    with tempfile.TemporaryDirectory(prefix="jq-demo-") as folder, Processes(Path(folder)) as processes:
        try:
            return 0 if asyncio.run(show(Path(folder), processes)) else 1
        except (DidNotStart, JQError) as error:
            print(f"\ndemo: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("\ndemo: stopped", file=sys.stderr)
            return 130


def conclude(problems: Sequence[str], well: str) -> bool:
    """Say that all went `well`, or what did not; whether it did."""
    if not problems:
        print(well)
        return True
    print(f"\n{len(problems)} things are NOT as they should be:")
    for problem in problems[:_SHOWN_PROBLEMS]:
        print(f"  {problem}")
    return False


def _environment() -> dict[str, str]:
    """This process's, with the package it runs from found first, and no JQ_ option to lead the demo
    astray."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JQ_")}
    package = str(Path(__file__).resolve().parents[2])
    kept["PYTHONPATH"] = os.pathsep.join([package, *filter(None, [kept.get("PYTHONPATH")])])
    return kept
