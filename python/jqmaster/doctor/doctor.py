"""What is wrong with a namespace and its Redis, and what to do about it: the namespace's alerts, as the operation of
that name has them, and what `redis_side` finds. The command `jqmaster doctor` prints it."""

from __future__ import annotations

from collections.abc import Iterable

from jqmaster.doctor import redis_side
from jqmaster.engine import alerts
from jqmaster.engine.engine import Engine, Operations
from jqmaster.engine.replies import Document

LEVELS = ("problem", "warning", "note", "ok")


async def look(engine: Operations) -> list[Document]:
    """All findings, the worst first, straight on Redis or by way of a master, which tells nothing of its Redis. Raises
    what the engine does.

    They are documents as those of alerts: `level`, `kind`, `text`, `advice`, `values`, and of what concerns Redis
    `means`. `problem`: jobs do not run or may be lost. `warning`: somebody should look. `note`: good to know. `ok`: the
    check found nothing.
    """
    findings: list[Document] = []
    if isinstance(engine, Engine):
        server = await redis_side.look(engine)
        findings = list(redis_side.findings(server))
        if server.trouble:
            return in_order(findings)
    told = await alerts.every(engine.alerts)
    well = redis_side.finding("alerts", "ok", "nothing is wrong in the namespace")
    return in_order([*findings, *(told or [well])])


def in_order(findings: Iterable[Document]) -> list[Document]:
    return sorted(findings, key=lambda finding: LEVELS.index(finding["level"]))


def is_wrong(findings: Iterable[Document]) -> bool:
    return any(finding["level"] in ("problem", "warning") for finding in findings)
