"""BullMQ as a process that the bench drives step by step."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

from kit.contenders import BENCH

DIRECTORY = BENCH / "bullmq"


def install() -> str | None:
    """Install BullMQ when it is not there; returns why it cannot be used, or None."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "node and npm are needed (apt-get install nodejs npm)"
    if (DIRECTORY / "node_modules" / "bullmq").is_dir():
        return None
    print("installing BullMQ from npm …", flush=True)
    result = subprocess.run(
        ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel", "error"],
        cwd=DIRECTORY,
        capture_output=True,
        text=True,
    )
    return None if result.returncode == 0 else "npm install failed: " + result.stderr.strip()[-300:]


class BullMQ:
    """One Node process connected to the server at ``path``."""

    def __init__(self, path: str) -> None:
        self.process = subprocess.Popen(
            ["node", "driver.js", path],
            cwd=DIRECTORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.version = self._reply()["version"]

    def _reply(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the BullMQ driver ended")
        return json.loads(line)

    def step(self, step: str, jobs: int) -> float:
        """Run a step of driver.js; returns the milliseconds it took."""
        assert self.process.stdin
        self.process.stdin.write(f"{step} {jobs}\n")
        self.process.stdin.flush()
        return float(self._reply()["ms"])

    def stop(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
