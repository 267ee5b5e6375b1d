"""An operation on its way to the partitions of a cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from typing import Any

from jqmaster.cluster.routes import unpacked
from jqmaster.connection import plainly
from jqmaster.engine.calling import Argument, pack


class Call:
    """An operation, and what it is given: a spec, in most cases, and blobs."""

    def __init__(self, operation: str, arguments: Sequence[Argument]) -> None:
        self.operation, self.arguments = operation, arguments
        self.spec = unpacked(arguments[0]) if arguments else {}

    def but(self, **changes: Any) -> Call:
        """With another spec; None takes a field out."""
        spec = {name: value for name, value in (self.spec | changes).items() if value is not None}
        return Call(self.operation, [pack(spec), *self.arguments[1:]])


async def all_of(asked: Iterable[Awaitable[Any]]) -> list[Any]:
    """The answers, once all are there; else the first problem, then as well."""
    return await plainly.gather(*asked, to_the_end=True)
