"""Requests behind which no script stands: each is declared beside its handler, in the words of a script's head."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from jqmaster.manifest import heads
from jqmaster.manifest.contract import Operation
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request

Handler = Callable[[Master, Request], Awaitable[Reply]]
OWN: dict[str, tuple[Operation, Handler]] = {}
"""By name, filled as the modules with handlers are imported."""


def own(name: str, head: str) -> Callable[[Handler], Handler]:
    """Have a handler answer what ``head`` says."""
    operation = heads.read(name, head + "\n@flags read")

    def declare(handler: Handler) -> Handler:
        OWN[name] = operation, handler
        return handler

    return declare
