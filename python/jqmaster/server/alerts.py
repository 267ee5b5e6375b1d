"""What is wrong now, for the overview: what the doctor finds, since when, gone when it is over; and all in a line."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from jqmaster.doctor import doctor, redis_side
from jqmaster.doctor.doctor import LATE_MS, ORDER
from jqmaster.doctor.facts import Source
from jqmaster.doctor.finding import Finding
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
from jqmaster.errors import JQError
from jqmaster.server.meters import Meters

log = logging.getLogger("jqmaster.overview")

_MOST_OWN = 50
_OF_QUEUES = ("unserved", "unknown", "late", "paused")
_MOST_EXAMINED_S = 60.0
# Why a queue is behind, in the order in which it is said; of each queue the first that holds.
CAUSES = {
    "unserved": "without any worker",
    "constraints": "by constraints",
    "workers": "without enough workers",
    "paused": "paused",
}


class Alerts:
    """Looks when asked to, and remembers since when each thing is so."""

    def __init__(self, engine: Engine, meters: Meters) -> None:
        self._engine = engine
        self._meters = meters
        self._found: list[Document] | None = None
        self._seen: dict[tuple[str, str | None], int] = {}  # when this master saw it first

    @property
    def is_known(self) -> bool:
        return self._found is not None

    async def look(self) -> None:
        try:
            async with asyncio.timeout(_MOST_EXAMINED_S):
                findings = await doctor.examine(Source(self._engine), await redis_side.look(self._engine))
        except (JQError, TimeoutError) as problem:
            log.info("cannot look for alerts: %s", problem or type(problem).__name__)
            return
        except Exception:
            log.exception("cannot look for alerts")
            self._found = self._found or []
            return
        self._found = [finding.document() for finding in findings if finding.level != "ok"]

    def documents(self, known: Mapping[str, Document], now_ms: int) -> list[Document] | None:
        """What holds now; None before the first look. `known`: the queues, which may be looked at more often."""
        if self._found is None:
            return None
        findings = self._own(now_ms) + [finding for finding in self._found if not _is_over(finding, known, now_ms)]
        # Within a level, what keeps queues from their work comes first.
        findings.sort(key=lambda finding: (ORDER.index(finding["level"]), finding["check"] not in _OF_QUEUES))
        self._seen = {
            _key(finding): self._seen.get(_key(finding)) or finding["as_of_ms"] or now_ms for finding in findings
        }
        return [{**finding, "seen_ms": self._seen[_key(finding)]} for finding in findings]

    def _own(self, now_ms: int) -> list[Document]:
        """What this master alone knows."""
        return [
            Finding(
                "workers", "warning", f"circuit open for worker {worker}", f"{why}.",
                "See whether it runs, and whether this master reaches it.", about=worker, as_of_ms=now_ms,
            ).document()
            for worker, why in list(self._meters.breakers.items())[:_MOST_OWN]
        ]  # fmt: skip


def _key(finding: Document) -> tuple[str, str | None]:
    return finding["check"], finding["about"]


def _is_over(finding: Document, known: Mapping[str, Document], now_ms: int) -> bool:
    """Whether what was found of a queue does not hold any more, as far as the queue itself tells."""
    queue, check = known.get(finding["about"] or ""), finding["check"]
    if queue is None or check not in _OF_QUEUES:
        return False
    if not queue["queued"] or (check == "unserved" and queue["running"]) or (check == "paused" and not queue["paused"]):
        return True
    oldest_ms = queue.get("oldest_ready_ms")
    return bool(check == "late" and oldest_ms and now_ms - oldest_ms < LATE_MS)


def verdict(alerts: list[Document] | None, *, is_least: bool = False) -> Document:
    """`{behind, unserved, constraints, workers, paused, others, text}`: how many queues are behind and why, how many
    other problems and warnings there are, and that in a line. `is_least`: not all queues were looked at."""
    order, causes = list(CAUSES), dict[str, str]()
    others = 0
    for alert in alerts or ():
        check = alert["check"]
        cause = {"late": alert["values"].get("cause", "workers"), "unknown": "unserved"}.get(check, check)
        if cause in CAUSES and alert["about"] is not None and alert["check"] in _OF_QUEUES:
            causes[alert["about"]] = min(cause, causes.get(alert["about"], cause), key=order.index)
        else:
            others += alert["level"] in ("problem", "warning")
    counts = {cause: sum(reason == cause for reason in causes.values()) for cause in CAUSES}
    return {"behind": len(causes), **counts, "others": others, "text": _say(alerts, counts, others, is_least)}


def _say(alerts: list[Document] | None, counts: dict[str, int], others: int, is_least: bool) -> str:
    if alerts is None:
        return "Loading …"
    behind, parts = sum(counts.values()), [f"{count:,} {CAUSES[cause]}" for cause, count in counts.items() if count]
    if not behind:
        return f"No queue is behind; {others:,} {'alert' if others == 1 else 'alerts'}" if others else "All is well"
    queues = f"{'At least ' if is_least else ''}{behind:,} {'queue' if behind == 1 else 'queues'} behind"
    why = ", ".join(parts) if behind > 1 or len(parts) > 1 else parts[0].partition(" ")[2]
    return f"{queues}: {why}" + (f"; {others:,} other {'alert' if others == 1 else 'alerts'}" if others else "")
