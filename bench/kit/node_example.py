"""The client in Node of examples/node, driven step by step."""

from __future__ import annotations

import shutil
import subprocess

from kit.contenders import BENCH
from kit.processes import ROOT, Driver

EXAMPLE, DIRECTORY = ROOT / "examples" / "node", ROOT / "var" / "node"
DRIVER = "node_caller.js"


def install() -> str | None:
    """A copy with its packages under var/; returns why it cannot be used, or None."""
    if not shutil.which("node") or not shutil.which("npm"):
        return "node and npm are needed (apt-get install nodejs npm)"
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for file in [*EXAMPLE.iterdir(), BENCH / "tools" / DRIVER]:
        if file.is_file():
            shutil.copy(file, DIRECTORY)
    if (DIRECTORY / "node_modules" / "redis").is_dir():
        return None
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel", "error"]
    result = subprocess.run(command, cwd=DIRECTORY, capture_output=True, text=True)
    return None if result.returncode == 0 else "npm install failed: " + result.stderr.strip()[-300:]


def node_example(path: str) -> Driver:
    """On the server at ``path``; its steps: ``tools/node_caller.js``."""
    return Driver("node", str(DIRECTORY / DRIVER), path)
