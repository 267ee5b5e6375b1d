"""An operation on its way to the partitions of a cluster."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgpack

from jqmaster.cluster.routes import unpacked
from jqmaster.engine.calls import Argument, pack
from jqmaster.errors import JQError

_INDEX = re.compile(r"(\w+)\[(\d+)\]")


class Call:
    """An operation, and what it is given: a spec, in most cases, and blobs."""

    def __init__(self, operation: str, arguments: Sequence[Argument]) -> None:
        self.operation = operation
        self.arguments = arguments
        self.spec = unpacked(arguments[0]) if arguments else {}

    def but(self, **changes: Any) -> Call:
        """With another spec; None takes a field out."""
        spec = {name: value for name, value in (self.spec | changes).items() if value is not None}
        return Call(self.operation, [pack(spec), *self.arguments[1:]])


@contextmanager
def part_of(name: str, indexes: Sequence[int]) -> Iterator[None]:
    """Problems with a part of a call have the path in the whole call: what the part's list `name` has is at `indexes`
    there."""
    try:
        yield
    except JQError as problem:
        found = _INDEX.match(problem.path or "")
        if found and found[1] == name and int(found[2]) < len(indexes):
            problem.path = f"{name}[{indexes[int(found[2])]}]{(problem.path or '')[found.end() :]}"
        raise


async def all_of(asked: Iterable[Awaitable[Any]]) -> list[Any]:
    """The answers, once all are there; else the first problem, then as well."""
    answers = await asyncio.gather(*asked, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers


def packed(document: Any) -> bytes:
    """As a script replies it."""
    blob: bytes = msgpack.packb(document, unicode_errors="surrogatepass")
    return blob
