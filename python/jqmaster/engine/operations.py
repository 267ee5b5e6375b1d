"""All operations as methods: ``await engine.kick(ids=[…], delay=5)`` is ``await engine.raw("kick", ids=[…], delay=5)``.

What they are stands in `operations.pyi` for editors and type checkers, made of the heads of the scripts by `make
generate`, and in docs/operations.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jqmaster.engine.calling import Calling
from jqmaster.manifest.manifest import operations


class CallsByName(Calling):
    """A method for each."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in operations():
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return partial(self.call, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *operations()})
