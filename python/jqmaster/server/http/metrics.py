"""`GET /metrics`, for Prometheus."""

from __future__ import annotations

import logging

import redis.exceptions

from jqmaster.errors import JQError
from jqmaster.server import exposition
from jqmaster.server.figures import Look
from jqmaster.server.http.own import own
from jqmaster.server.http_error import HttpError
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, accepted

log = logging.getLogger("jqmaster.metrics")

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
    openmetrics = _wants_openmetrics(request.header("accept"))
    families = exposition.Families(await _look(master), master.meters, master.dispatch.under_way)
    kind = exposition.OPENMETRICS if openmetrics else exposition.TEXT
    return Reply(200, exposition.render(families, openmetrics=openmetrics), kind)


async def _look(master: Master) -> Look | None:
    try:
        return await master.figures.look()
    except (JQError, redis.exceptions.RedisError, OSError) as error:
        log.warning("cannot look at the namespace: %s", error)
        return None


def _wants_openmetrics(accept: str | None) -> bool:
    """Raises 406 for a client that takes neither format."""
    taken = [kind for kind, quality in accepted(accept or "*/*").items() if quality > 0]
    if _OPENMETRICS in taken:
        return True
    if not any(kind in taken for kind in _TEXT):
        raise HttpError(406, "NOTACCEPTABLE", f"accept: this is text/plain or {_OPENMETRICS}", "accept")
    return False
