"""Versions of the settings of a system: which one a partition has, and which one a process knows."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Sequence

from jqmaster.errors import JQError

PATIENCE_S = 30.0  # then a partition with older settings is taken as it is: nobody can mend them, or may
NONE = "0"  # where nothing was set in all partitions


def rank(version: str) -> tuple[int, str]:
    """The later one has more. One that is not whole, as somebody is bringing it in line, or died of it, has least."""
    number, _, tag = version.partition("-")
    return (-1 if is_unsettled(version) else int(number)), tag


def following(version: str) -> str:
    """What comes after a version. No two who change settings at the same moment have the same."""
    number = int(version.partition("-")[0])
    return f"{number + 1}-{secrets.token_hex(4)}"


def unsettled() -> str:
    """While settings are no whole version."""
    return f"0-{secrets.token_hex(4)}"


def is_unsettled(version: str) -> bool:
    """Whether somebody is bringing them in line, or died of it."""
    return version.startswith("0-")


def version_key(namespace: str) -> str:
    """Where a partition has it."""
    return f"{namespace}:settings-version"


def latest(found: Sequence[str | JQError]) -> int:
    """Which partition has the settings that all are to have. After a failover that lost some two may have come from
    the same one: then those that more partitions have. Raises the first problem where none tells."""
    counts = Counter(one for one in found if isinstance(one, str))
    if not counts:
        raise next(one for one in found if isinstance(one, JQError))

    def worth(version: str) -> tuple[int, int, str]:
        number, tag = rank(version)
        return number, counts[version], tag

    return list(found).index(max(counts, key=worth))


class Settled:
    """What a process knows of it. Partitions go by their numbers."""

    def __init__(self) -> None:
        self.version = NONE
        self.is_behind = False  # a partition has an older one
        self.wrong = asyncio.Event()  # settings are to be compared
        self._since: dict[int, float] = {}  # when its settings were found to be older
        self._its: dict[int, tuple[str, str]] = {}  # while the first version is known its own will do, the second

    def heard(self, version: str) -> bool:
        """Whether it is later than what was known; then it is known from now on."""
        if rank(version) <= rank(self.version):
            return False
        self.version = version
        return True

    def compare(self) -> None:
        """A partition was away, and may have missed something."""
        self.wrong.set()

    def bring(self) -> None:
        """A partition has older settings, or may have."""
        self.is_behind = True
        self.wrong.set()

    # -- one partition ----------------------------------------------------------------------------

    def of(self, number: int) -> str:
        """For which version it is asked for jobs."""
        known, its = self._its.get(number, ("", ""))
        return its if known == self.version else self.version

    def is_stale(self, number: int) -> bool:
        """Whether it starts nothing, since its settings are older."""
        return number in self._since

    def since_s(self, number: int) -> float:
        """For how long that is so."""
        return time.monotonic() - self._since.get(number, time.monotonic())

    def is_right(self, number: int) -> None:
        """It has what it was asked for."""
        self._since.pop(number, None)

    def told(self, number: int, version: str) -> bool:
        """Which version it has, which is not the one that it was asked for. Whether to ask again at once; else it has
        older settings, which has to be mended."""
        known, _ = self._its.pop(number, ("", ""))
        if self.heard(version) or version == self.version:
            self.is_right(number)
            return True
        self._since.setdefault(number, time.monotonic())
        if known == self.version or self.since_s(number) > PATIENCE_S:
            self._its[number] = self.version, version
            self.is_right(number)
            return True
        self.bring()
        return False
