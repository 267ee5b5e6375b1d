"""BullMQ as a process that the bench drives step by step."""

from __future__ import annotations

import shutil
import subprocess

from kit.contenders import BENCH
from kit.processes import Driver

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


class BullMQ(Driver):
    """One Node process connected to the server at ``path``; its steps: ``bullmq/driver.js``."""

    def __init__(self, path: str) -> None:
        super().__init__("node", "bullmq/driver.js", path)
        self.version = str(self.ready["version"])
