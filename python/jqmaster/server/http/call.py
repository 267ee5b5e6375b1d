"""`POST /call/<operation>`: a list of the script's own arguments in, its own reply out. What the library uses, and all
that a thin client needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgpack

from jqmaster.engine import packform
from jqmaster.manifest.contract import Operation
from jqmaster.server.http.asking import ask, refuse_lacking, said_by_the_server
from jqmaster.server.http.within import unpacked
from jqmaster.server.http_error import invalid
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request, seconds
from jqmaster.server.reader import check as check_body

MOST_WAIT_S = 300


class Call:
    """The handler of one operation."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self._signs = bool(operation.restricted) or any(one.type == "actor" for one in operation.arguments)
        self._looks = self._signs or operation.room == "worker" or operation.name == "pick"

    async def __call__(self, master: Master, request: Request) -> Reply:
        """Answer a request."""
        arguments = _arguments(request.body)
        spec = unpacked(arguments[0]) if self._looks and arguments else None
        if self._signs and isinstance(spec, dict):
            arguments[0] = self._signed(request, arguments[0], spec)
        given = spec if isinstance(spec, dict) else {}
        wait_s = seconds(request.arguments.get("timeout", 0), "timeout", MOST_WAIT_S)
        return Reply(200, packform.pack(await ask(master, request, self.operation, arguments, given, wait_s)))

    def _signed(self, request: Request, packed: bytes, spec: Mapping[str, Any]) -> bytes:
        """The spec, with what the server says of who calls. Raises 403."""
        refuse_lacking(request, self.operation, spec)
        said = {name: packform.pack(text) for name, text in said_by_the_server(request, self.operation, spec).items()}
        # Its own bytes stay as they are: the script says what is wrong with them.
        if "actor" in spec:
            return packform.raw_map(packform.members(packed) | said)
        return packform.extend_map(packed, said)


def _arguments(body: bytes) -> list[bytes]:
    check_body(body)
    try:
        given = msgpack.unpackb(body, strict_map_key=False, raw=True)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        given = None
    if not isinstance(given, list):
        raise invalid(None, "expected a list of the script's arguments")
    found = [str(one).encode() if type(one) is int else one for one in given]
    for index, one in enumerate(found):
        if not isinstance(one, bytes):
            raise invalid(f"[{index}]", "expected text or binary data, an argument of the script")
    return found
