"""All operations of docs/operations.md for programs: `jq.operations.kick(ids=[…], delay=5)`, and for coroutines `await
jq.operations.akick(…)`. What they take stands in `operations.pyi`, made of the heads of the scripts by `make generate`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jqmaster.client.link import Link
from jqmaster.manifest.manifest import operations


class PlainOperations:
    """A method for each, and an async twin with an `a` before its name."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def call(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        """Run one operation by its name, as `Engine.call` does."""
        return self._link.run(self.acall(operation, *arguments, **named))

    async def acall(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        """The same, for coroutines."""
        return await getattr((await self._link.open()).engine, operation)(*arguments, **named)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        known = operations()
        if name in known:
            return partial(self.call, name)
        if name[:1] == "a" and name[1:] in known:
            return partial(self.acall, name[1:])
        raise AttributeError(f"there is no operation {name}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *operations(), *(f"a{name}" for name in operations())})
