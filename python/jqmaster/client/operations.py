"""All operations of docs/operations.md: `jq.operations.kick(ids=[…], delay=5)`. What they take stands in
`operations.pyi`, made of the heads of the scripts by `make generate`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jqmaster.manifest.manifest import operations


class PlainOperations:
    """A method for each operation. `call`: runs one by its name."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in operations():
            raise AttributeError(f"there is no operation {name}")
        return partial(self._call, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *operations()})
