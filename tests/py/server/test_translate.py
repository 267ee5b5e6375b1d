"""What a reply is to HTTP follows from its type in the head, whatever that is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgpack
import pytest

from jqmaster.manifest import heads
from jqmaster.server.http.translate import Translation
from jqmaster.server.message import Request

HEAD = """\
 Reads.

 @arg    ids  list<job>? 1..1000
 @reply  {type}
 @errors INVALID ids
 @flags  read
 @role   viewer
 @http   POST /reads
"""


async def answer(type_: str, reply: Any) -> Any:
    """What a script's reply becomes."""

    async def raw(_name: str, *_arguments: bytes) -> Any:
        return reply

    operation = heads.read("reads", HEAD.format(type=type_))
    master: Any = SimpleNamespace(engine=SimpleNamespace(raw=raw))
    request = Request({}, {})
    translated = await Translation(operation, operation.routes[0])(master, request)
    return msgpack.unpackb(translated.body)


@pytest.mark.parametrize(
    ("type_", "reply", "body"),
    [
        ("list<ms?> waited", [5, None, 0], {"waited": [5, None, 0]}),
        ("list<queue> queues", [b"a", b"b"], {"queues": ["a", "b"]}),
        ("list<flag> there", [1, None], {"there": [True, False]}),
        ("list<Job?> jobs", [msgpack.packb({"id": "1"}), None], {"jobs": [{"id": "1"}, None]}),
        ("page<integer> sizes", [b"", 3, 4], {"sizes": [3, 4], "cursor": ""}),
        ("page<text> problems", [b"7", b"odd"], {"problems": ["odd"], "cursor": "7"}),
        ("integer", 3, 3),
        ("text?", None, None),
        ("leave|cancel", b"leave", "leave"),
        ("Queue", msgpack.packb({"name": "a"}), {"name": "a"}),
    ],
)
async def test_a_reply_of_any_type_is_answered(type_: str, reply: Any, body: Any) -> None:
    assert await answer(type_, reply) == body
