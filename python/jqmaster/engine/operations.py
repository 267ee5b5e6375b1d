"""All operations as methods: ``await engine.kick(ids=[…])`` is ``await engine.call("kick", ids=[…])``.

What they are stands in `operations.pyi` for editors and type checkers, made of the heads of the scripts by `make
generate`, and in docs/operations.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jqmaster.engine.options import meant
from jqmaster.manifest.manifest import operations


class CallsByName:
    """A method for each, by ``call``."""

    call: Callable[..., Any]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in operations():
            raise AttributeError(f"there is no operation {name}{meant(name, operations())}")
        return partial(self.call, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *operations()})
