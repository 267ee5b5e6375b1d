"""The handler of the search."""

from __future__ import annotations

import re

from jqmaster.engine.engine import Operations
from jqmaster.engine.search import MOST
from jqmaster.errors import Unavailable
from jqmaster.master.master import Master
from jqmaster.wire import packform
from jqmaster.wire.errors import invalid
from jqmaster.wire.message import Reply, Request


async def search(master: Master, request: Request) -> Reply:
    """`GET /search`: a few of all kinds whose names contain a text, and jobs that it describes."""
    if not isinstance(master.engine, Operations):
        raise Unavailable("this master cannot search")
    text = request.arguments.get("q", "")
    count = request.arguments.get("count", "5")
    if not re.fullmatch(r"[0-9]{1,2}", count) or not 1 <= int(count) <= MOST:
        raise invalid("count", f"expected an integer from 1 to {MOST}, got {packform.printable(count, 40)!r}")
    return Reply(200, packform.pack(await master.engine.search(text, count=int(count))))
