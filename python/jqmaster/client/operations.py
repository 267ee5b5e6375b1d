"""All operations of docs/operations.md: `jq.operations.kick(ids=[…], delay=5)`. What they take stands in
`operations.pyi`, made of the heads of the scripts by `make generate`."""

from collections.abc import Callable
from typing import Any

from jqmaster.engine.operations import CallsByName


class PlainOperations(CallsByName):
    """`call`: runs one by its name."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call
