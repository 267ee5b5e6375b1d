"""`GET /metrics`, for Prometheus."""

from __future__ import annotations

import logging
from typing import Any

import redis.exceptions
from prometheus_client.exposition import generate_latest as as_text
from prometheus_client.openmetrics.exposition import generate_latest as as_openmetrics

from jqmaster.errors import JQError
from jqmaster.server.http.own import own
from jqmaster.server.http_error import HttpError
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, accepted
from jqmaster.server.metrics import Families

log = logging.getLogger("jqmaster.metrics")

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_TEXT = ("text/plain", "text/*", "*/*")
_OPENMETRICS = "application/openmetrics-text"


@own(
    "metrics",
    """Figures for Prometheus.
@reply text
@errors NOTACCEPTABLE, UNSUPPORTED
@role viewer
@http GET /metrics -> metrics""",
)
async def metrics(master: Master, request: Request) -> Reply:
    """All figures, in Prometheus' text format or in OpenMetrics. What the master itself has counted is told
    also when Redis is out of reach."""
    kind = _format(request.header("accept"))
    families = Families(None, master.meters, master.dispatch.under_way)
    try:
        look = await master.figures.look()
        names = [queue["name"] for queue in look.queues]
        families.tallies = await master.tallies.look(names, look.now_ms, is_whole=look.count == len(names))
        families.commands = await _commands(master)
        families.look = look
    except (JQError, redis.exceptions.RedisError, OSError) as error:
        log.warning("cannot look at the namespace: %s", error)
    text: bytes = (as_openmetrics if kind == OPENMETRICS else as_text)(families)
    return Reply(200, text, kind)


async def _commands(master: Master) -> dict[str, dict[str, Any]]:
    """What Redis says of commands; nothing where this user may not ask."""
    try:
        stats = await master.engine.redis.info("commandstats")
    except redis.exceptions.ResponseError:
        return {}
    of_commands = {name: values for name, values in stats.items() if isinstance(values, dict)}
    return {name.removeprefix("cmdstat_"): values for name, values in of_commands.items()}


def _format(accept: str | None) -> str:
    """Which format. Raises 406 for a client that takes neither."""
    taken = [kind for kind, quality in accepted(accept or "*/*").items() if quality > 0]
    if _OPENMETRICS in taken:
        return OPENMETRICS
    if not any(kind in taken for kind in _TEXT):
        raise HttpError(406, "NOTACCEPTABLE", f"accept: this is text/plain or {_OPENMETRICS}", "accept")
    return TEXT
