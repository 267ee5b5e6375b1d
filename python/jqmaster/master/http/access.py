"""The handler that creates keys of this API."""

from __future__ import annotations

from jqmaster.master.http.translate import Translation
from jqmaster.master.master import Master
from jqmaster.wire import packform, secret
from jqmaster.wire.message import Reply, Request
from jqmaster.wire.operations import OPERATIONS

_GRANT = Translation(OPERATIONS["grant"])


async def grant(master: Master, request: Request) -> Reply:
    """`POST /keys`: a new key, which is told this once."""
    new = secret.new()
    asked, _ = _GRANT.read(request)
    spec = packform.extend_map(asked, {"id": packform.pack(new.id), "digest": packform.pack(new.digest)})
    document = await master.engine.call("grant", spec)
    return Reply(201, packform.extend_map(document, {"key": packform.pack(new.text)}))
