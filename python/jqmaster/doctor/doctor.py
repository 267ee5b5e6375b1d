"""What is wrong with a namespace and its Redis, and what to do about it: the namespace's alerts, as the operation of
that name has them, and what `redis_side` finds. The command `jqmaster doctor` prints it."""

from __future__ import annotations

import time

from jqmaster.doctor import redis_side
from jqmaster.doctor.finding import Finding, Level
from jqmaster.engine import alerts
from jqmaster.engine.engine import Engine, Operations
from jqmaster.engine.replies import Document

ORDER: tuple[Level, ...] = ("problem", "warning", "note", "ok")
_ABOUT = ("worker", "job", "constraint", "schedule", "group", "queue")


async def look(engine: Operations) -> list[Finding]:
    """All findings, the worst first, straight on Redis or by way of a master, which tells nothing of its Redis. Raises
    what the engine does."""
    findings: list[Finding] = []
    now_ms = int(time.time() * 1000)
    if isinstance(engine, Engine):
        server = await redis_side.look(engine)
        findings += redis_side.check.of(server)
        if server.trouble:
            return in_order(findings)
        now_ms = server.now_ms
    told = await alerts.every(engine.alerts)
    findings += [of_alert(alert, now_ms) for alert in told]
    if not told:
        findings.append(Finding("alerts", "ok", "nothing is wrong in the namespace", as_of_ms=now_ms))
    return in_order(findings)


def of_alert(alert: Document, now_ms: int) -> Finding:
    about = next((alert[field] for field in _ABOUT if field in alert), None)
    return Finding(
        alert["kind"], alert["level"], alert["text"], "", alert["advice"], about, alert.get("values") or {},
        alert.get("since_ms"), now_ms,
    )  # fmt: skip


def in_order(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: ORDER.index(finding.level))


def is_wrong(findings: list[Finding]) -> bool:
    return any(finding.level in ("problem", "warning") for finding in findings)
