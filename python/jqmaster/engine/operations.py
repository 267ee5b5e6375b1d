"""All operations as methods: ``await engine.kick(ids=[…])`` is ``await engine.call("kick", ids=[…])``.

What they are stands in `operations.pyi` for editors and type checkers, made of the heads of the scripts by `make
generate`, and in docs/operations.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jqmaster.manifest.manifest import operations


class CallsByName:
    """A method for each, by ``call``."""

    call: Callable[..., Any]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in operations():
            raise AttributeError(f"{type(self).__name__} has no {name}")
        return partial(self.call, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *operations()})
