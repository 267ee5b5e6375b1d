"""Tables, targets, and what machine the figures come from."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any


@dataclass
class Target:
    what: str
    target: str
    value: str
    met: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def at_most(what: str, value: float, limit: float, unit: str = "", digits: int = 2) -> Target:
    return Target(what, f"≤ {limit:,.{digits}f}{unit}", f"{value:,.{digits}f}{unit}", value <= limit)


def at_least(what: str, value: float, limit: float, unit: str = "", digits: int = 2) -> Target:
    return Target(what, f"≥ {limit:,.{digits}f}{unit}", f"{value:,.{digits}f}{unit}", value >= limit)


def number(value: Any) -> str:
    """Three to four figures that mean something, and no more."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(number(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def target_table(targets: Sequence[dict[str, Any]]) -> str:
    rows = [(t["what"], t["target"], t["value"], "met" if t["met"] else "**not met**") for t in targets]
    return table(["what", "target", "found", ""], rows)


def machine() -> dict[str, Any]:
    def first_line(*command: str) -> str:
        try:
            return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[0]
        except (OSError, IndexError):
            return "not installed"

    def version(package: str) -> str:
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return "not installed"

    redis = first_line("redis-server", "--version").split()
    return {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "redis": next((word[2:] for word in redis if word.startswith("v=")), "?"),
        "node": first_line("node", "--version").lstrip("v"),
        "packages": {name: version(name) for name in ("hiredis", "hypercorn", "quart", "uvloop")},
    }
