"""Counting a redis-server's instructions with callgrind.

The count is zeroed and dumped from outside while the server idles, so that only the measured calls are in it
(and the server's cron, once a second: below 0.1 %).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kit.server import Server

PREFIX = ["valgrind", "--tool=callgrind", "--callgrind-out-file=cg"]
SETTINGS = ["--hz", "1", "--activerehashing", "no", "--jemalloc-bg-thread", "no"]


@dataclass
class Profile:
    """Instructions by function: ``own`` in it alone, ``inclusive`` with all it calls, ``calls`` to it.

    ``inclusive`` of a function that calls itself, directly or through others (Lua's interpreter around
    ``redis.call``), counts the inner part several times and means nothing.
    """

    total: int = 0
    own: Counter[str] = field(default_factory=Counter)
    inclusive: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    edges: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """(caller, called) -> [calls, inclusive instructions]"""

    def called_by(self, caller: str) -> dict[str, list[int]]:
        return {called: cost for (by, called), cost in self.edges.items() if by == caller}


class CountedServer(Server):
    def __init__(self) -> None:
        if not shutil.which("valgrind"):
            raise RuntimeError("valgrind is not installed: apt-get install valgrind")
        super().__init__(prefix=PREFIX, settings=SETTINGS)

    def _control(self, option: str) -> None:
        result = subprocess.run(
            ["callgrind_control", option, str(self.process.pid)],
            capture_output=True,
            text=True,
            cwd=self.directory,
        )
        if result.returncode != 0 or "OK" not in result.stdout:
            raise RuntimeError(f"callgrind_control {option} failed: {result.stdout}{result.stderr}")

    def zero(self) -> None:
        self._control("-z")

    def count(self) -> Profile:
        """Instructions since the last ``zero`` or ``count``."""
        for old in self.directory.glob("cg*"):
            old.unlink()
        self._control("-d")
        dumps = [path for path in self.directory.glob("cg*") if path.stat().st_size > 0]
        if len(dumps) != 1:
            raise RuntimeError(f"expected one dump of callgrind, found {len(dumps)}")
        return parse(dumps[0])


NAME = re.compile(r"\((\d+)\)(?: (.*))?")


def parse(path: Path) -> Profile:
    """Read a callgrind dump (compressed names, one position column)."""
    profile = Profile()
    names: dict[str, str] = {}
    function = called = ""
    in_call = False  # the next cost line belongs to the call; its count may be 0 for frames older than the zero

    def named(text: str) -> str:
        match = NAME.fullmatch(text)
        if not match:
            return text
        number, name = match.groups()
        if name:
            names[number] = re.sub(r"'\d+$", "", name)
        return names[number]

    for line in path.open():
        first = line[0]
        if line.startswith("fn="):
            function = named(line[3:].rstrip())
        elif line.startswith("cfn="):
            called = named(line[4:].rstrip())
        elif line.startswith("calls="):
            edge = profile.edges.setdefault((function, called), [0, 0])
            edge[0] += int(line[6:].split()[0])
            in_call = True
        elif first.isdigit() or first in "+-*":
            columns = line.split()
            cost = int(columns[1]) if len(columns) > 1 else 0
            if in_call:
                edge[1] += cost
                in_call = False
            else:
                profile.own[function] += cost
        elif line.startswith("totals:"):
            profile.total = int(line.split()[1])
    if profile.total != sum(profile.own.values()):
        raise RuntimeError(f"{path}: the dump of callgrind is not whole")
    for (_, called), (calls, cost) in profile.edges.items():
        profile.calls[called] += calls
        profile.inclusive[called] += cost
    return profile
