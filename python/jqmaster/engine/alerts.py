"""All alerts of a namespace, over pages and partitions, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jqmaster.engine.calling import Operations
from jqmaster.engine.replies import Document

_ABOUT = ("kind", "queue", "worker", "constraint", "job", "group")


async def every(engine: Operations) -> list[Document]:
    """All of a namespace."""
    return in_order([alert async for alert in engine.each("alerts")])


def in_order(alerts: Iterable[Document]) -> list[Document]:
    """The worst first. What several partitions tell of the same thing is told once."""
    found: dict[tuple[Any, ...], Document] = {}
    for alert in sorted(alerts, key=lambda alert: (-alert["weight"], alert["text"])):
        found.setdefault(tuple(alert.get(field) for field in _ABOUT), alert)
    return list(found.values())


def verdict(alerts: Sequence[Document]) -> Document:
    """How things stand, as `{level, text}`: `ok`, or the level of the worst, and a sentence. `alerts`: in order."""
    if not alerts:
        return {"level": "ok", "text": "All is well"}
    more = len(alerts) - 1
    others = f". And {more:,} more alert{'s' if more > 1 else ''}" if more else ""
    return {"level": alerts[0]["level"], "text": alerts[0]["text"] + others}
