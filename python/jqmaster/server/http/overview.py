"""Handlers of what the master itself keeps or puts together, mostly once for all who look."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from jqmaster.engine import packform
from jqmaster.engine.ranking import ORDERS, Looked, ranked
from jqmaster.engine.search import MOST
from jqmaster.errors import JQError
from jqmaster.manifest.contract import Argument
from jqmaster.server import jsonform
from jqmaster.server.http.asking import refuse_draining
from jqmaster.server.http.events import ALIVE_EVERY_S, EVENT_STREAM, sent
from jqmaster.server.http.own import Own, own
from jqmaster.server.http.translate import value_of
from jqmaster.server.http_error import HttpError, from_engine, invalid
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request
from jqmaster.server.reader import printable


@own(
    "overview",
    """What an operator sees at a glance.
@reply Overview
@errors UNAVAILABLE
@role viewer
@http GET /overview""",
)
async def get_overview(master: Master, _request: Request) -> Reply:
    """`GET /overview`: counts, rates, workers and alerts, two seconds old at most."""
    refuse_draining(master)
    return Reply(200, await master.overview.document())


@own(
    "overview_events",
    """Follow the overview.
@reply Overview
@errors UNAVAILABLE
@role viewer
@http GET /overview/events -> events""",
)
async def overview_events(master: Master, _request: Request) -> Reply:
    """`GET /overview/events`: the same, every two seconds."""
    refuse_draining(master)
    coming = master.overview.follow(ALIVE_EVERY_S)
    return Reply(200, content_type=EVENT_STREAM, stream=sent(master, coming, _piece))


@own(
    "ranking",
    f"""Queues in order of how they do.
@arg by {"|".join(ORDERS)}? = oldest  the column
@arg turned flag?  the other way round
@arg text text?  contained in the name
@arg minutes integer? 1..180 = 15  how they did in so many minutes
@arg first integer? 0..20000 = 0  behind so many
@arg count integer? 1..1000 = 50
@reply Ranking
@errors INVALID
@role viewer
@http GET /queues/ranking""",
)
async def ranking(master: Master, request: Request) -> Reply:
    """`GET /queues/ranking`: queues in order of how they do, as far as they were looked at."""
    wanted = _asked(ranking, request)
    minutes = wanted.pop("minutes")
    ranked(Looked([], False), **wanted)
    rows, age_ms = await master.rankings.look(minutes)
    answer = ranked(rows, **wanted)
    answer["queues"] = await master.rankings.freshen(minutes, answer["queues"])
    return Reply(200, packform.pack({**answer, "age_ms": age_ms}))


@own(
    "search",
    """Find anything by a part of its name, and jobs by a line.
@arg q text  part of a name, the id of a job, or a line such as `customer.id:acme slower:30s`
@arg count integer? 1..20 = 5  of each kind
@reply Found
@errors INVALID
@role viewer
@http GET /search""",
)
async def search(master: Master, request: Request) -> Reply:
    """`GET /search`: a few of all kinds whose names contain a text, and jobs that it describes."""
    text = request.arguments.get("q", "")
    count = request.arguments.get("count", "5")
    if not re.fullmatch(r"[0-9]{1,2}", count) or not 1 <= int(count) <= MOST:
        raise invalid("count", f"expected an integer from 1 to {MOST}, got {printable(count, 40)!r}")
    return Reply(200, packform.pack(await master.engine.search(text, count=int(count))))


@own(
    "trends",
    """What came to an end over time, by outcome, queue or name.
@arg split outcome|queue|name? = outcome
@arg from_ms moment_ms  from the bucket of then on
@arg to_ms moment_ms?  buckets that begin before; default: now
@arg top integer? 1..20 = 8  so many series, the largest
@reply Trends
@errors INVALID
@role viewer
@http GET /trends""",
)
async def get_trends(master: Master, request: Request) -> Reply:
    """`GET /trends`: the largest queues or names, or outcomes, over time."""
    asked = _asked(get_trends, request)
    refuse_draining(master)
    return Reply(200, await master.trends.trends(asked["split"], asked["from_ms"], asked.get("to_ms"), asked["top"]))


@own(
    "changes",
    """What is different since a moment.
@arg since_ms moment_ms  such as a mark's
@arg span integer? 60..691200 = 3600  so many seconds before and after
@arg top integer? 1..1000 = 100  so many rows, the most changed
@reply Changes
@errors INVALID
@role viewer
@http GET /changes""",
)
async def get_changes(master: Master, request: Request) -> Reply:
    """`GET /changes`: what is different since a moment."""
    asked = _asked(get_changes, request)
    refuse_draining(master)
    return Reply(200, await master.trends.changes(asked["since_ms"], asked["span"], asked["top"]))


def _asked(asked: Own, request: Request) -> dict[str, Any]:
    """The arguments of a request, those with a default always among them."""
    fields: dict[str, Any] = {}
    for argument in asked.operation.arguments:
        value = value_of(argument, request.arguments.get(argument.name))
        if value is None and not argument.optional:
            raise HttpError(400, "INVALID", f"{argument.name} is missing", argument.name)
        _check_range(argument, value)
        if (value := argument.default if value is None else value) is not None:
            fields[argument.name] = value
    return fields


def _check_range(argument: Argument, value: Any) -> None:
    if argument.type == "integer" and value is not None:
        assert argument.least is not None and argument.most is not None
        if not argument.least <= value <= argument.most:
            raise invalid(argument.name, f"expected an integer from {argument.least} to {argument.most}, got {value}")


@lru_cache(maxsize=2)
def _event(packed: bytes) -> bytes:
    """Made once for all who listen."""
    return b"data: %s\n\n" % jsonform.to_json(packed)


def _piece(result: bytes | JQError) -> bytes:
    if isinstance(result, JQError):
        return b"event: unavailable\ndata: %s\n\n" % jsonform.to_json(packform.pack(from_engine(result, None).body()))
    return _event(result)
