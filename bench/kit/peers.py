"""Installs what is measured beside JQ, each in an environment of its own below var/."""

from __future__ import annotations

import shutil
import subprocess
import sys

from kit.programs import BENCH, ROOT

PEERS = {
    "RQ": ("with_rq.py", ["rq"]),
    "huey": ("with_huey.py", ["huey", "redis", "hiredis"]),
    "arq": ("with_arq.py", ["arq", "uvloop"]),
    "dramatiq": ("with_dramatiq.py", ["dramatiq[redis]", "hiredis"]),
    "Celery": ("with_celery.py", ["celery[redis]"]),
}
"""Driver, and packages of PyPI. BullMQ is of npm."""


def environment(name: str) -> str:
    """Its Python."""
    home = ROOT / "var" / "peers" / name
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        print(f"installing {name} from PyPI …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS[name][1]], check=True)
        (home / "ready").touch()
    return str(python)


def has_bullmq() -> bool:
    """Whether it could be installed."""
    home = BENCH / "drivers"
    if not (shutil.which("node") and shutil.which("npm")):
        print("without BullMQ: node and npm are needed", file=sys.stderr)
        return False
    if not (home / "node_modules").is_dir():
        print("installing BullMQ from npm …", file=sys.stderr, flush=True)
        options = ["--no-package-lock", "--no-audit", "--no-fund", "--loglevel", "error"]
        subprocess.run(["npm", "install", *options], cwd=home, check=True)
    return True
