"""All operations of docs/operations.md for plain code: `jq.operations.kick(ids=[…], delay=5)`. What they take stands in
`operations.pyi`, made of the heads of the scripts by `make generate`; `jq.aoperations` is the same for coroutines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jqmaster.client.link import Link
from jqmaster.engine.operations import CallsByName
from jqmaster.manifest.manifest import operations


class PlainOperations:
    """A method for each operation."""

    def __init__(self, link: Link, twin: CallsByName) -> None:
        self._link = link
        self._twin = twin

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            method = getattr(self._twin, name)
        except AttributeError:
            raise AttributeError(f"there is no operation {name}") from None
        return lambda *arguments, **named: self._link.run(method(*arguments, **named))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *operations()})
