"""`GET /metrics`, for Prometheus."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import redis.exceptions
from prometheus_client.exposition import choose_encoder

from jqmaster.engine.replies import Document
from jqmaster.errors import JQError
from jqmaster.server.http.own import own
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request
from jqmaster.server.metrics import Families

log = logging.getLogger("jqmaster.metrics")
_DAY_MS = 86_400_000
_AT_ONCE = 10  # calls


@own(
    "metrics",
    """Figures for Prometheus.
@reply metrics
@errors UNAVAILABLE
@role viewer
@http GET /metrics""",
)
async def metrics(master: Master, request: Request) -> Reply:
    """All figures, in Prometheus' text format or in OpenMetrics. What the master itself has counted is told
    also when Redis is out of reach."""
    families = Families(None, master.meters, master.dispatch.under_way)
    try:
        look = await master.figures.look()
        families.days = await _days(master, [None, *(queue["name"] for queue in look.queues)], look.now_ms)
        families.commands = await _commands(master)
        families.look = look
    except (JQError, redis.exceptions.RedisError, OSError) as error:
        log.warning("cannot look at the namespace: %s", error)
    # By its name alone: with a version it would answer in types that openapi/master.yaml has not.
    openmetrics = "application/openmetrics-text"
    encode, kind = choose_encoder(openmetrics if openmetrics in (request.header("accept") or "") else "")
    return Reply(200, encode(families), kind)


async def _days(master: Master, names: list[str | None], now_ms: int) -> dict[str | None, Document]:
    """What happened since midnight UTC in each of these queues; None: in all."""
    begin_ms = now_ms // _DAY_MS * _DAY_MS

    async def day_of(name: str | None) -> list[Document]:
        return await master.engine.stats("day", queue=name, from_ms=begin_ms, to_ms=now_ms + 1)

    found: dict[str | None, Document] = {}
    for at in range(0, len(names), _AT_ONCE):
        some = names[at : at + _AT_ONCE]
        days = await asyncio.gather(*map(day_of, some))
        found |= {name: documents[0] for name, documents in zip(some, days, strict=True) if documents}
    return found


async def _commands(master: Master) -> dict[str, dict[str, Any]]:
    """What Redis says of commands; nothing where this user may not ask."""
    try:
        stats = await master.engine.redis.info("commandstats")
    except redis.exceptions.ResponseError:
        return {}
    of_commands = {name: values for name, values in stats.items() if isinstance(values, dict)}
    return {name.removeprefix("cmdstat_"): values for name, values in of_commands.items()}
