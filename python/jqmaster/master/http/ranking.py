"""The handler of the ranking of queues."""

from __future__ import annotations

import msgpack

from jqmaster.engine.ranking import MINUTES, Looked, ranked
from jqmaster.errors import Unavailable
from jqmaster.master.http.translate import Translation
from jqmaster.master.master import Master
from jqmaster.wire import packform
from jqmaster.wire.message import Reply, Request
from jqmaster.wire.operations import OPERATIONS

_RANKING = Translation(OPERATIONS["ranking"])


async def ranking(master: Master, request: Request) -> Reply:
    """`GET /queues/ranking`: queues in order of how they do, as far as they were looked at."""
    if master.rankings is None:
        raise Unavailable("this master cannot rank queues")
    wanted = msgpack.unpackb(_RANKING.read(request)[0], unicode_errors="surrogateescape")
    minutes = wanted.pop("minutes", MINUTES)
    ranked(Looked([], False), **wanted)
    found, age_ms = await master.rankings.look(minutes)
    answer = ranked(found, **wanted)
    answer["queues"] = await master.rankings.freshen(minutes, answer["queues"])
    return Reply(200, packform.pack({**answer, "age_ms": age_ms}))
