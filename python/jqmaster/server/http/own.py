"""Requests behind which no script stands: each is declared by its handler's docstring, in the words of a script's
head."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from jqmaster.manifest import heads
from jqmaster.manifest.contract import Operation
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request

Handler = Callable[[Master, Request], Awaitable[Reply]]


class Own(NamedTuple):
    """A request of the server's own, and who answers it."""

    operation: Operation
    handler: Handler


def own(handler: Handler) -> Own:
    """Have a handler answer what it says, called as it is."""
    head = f"{inspect.getdoc(handler)}\n@argv nothing\n@flags read"
    return Own(heads.read(handler.__name__, head), handler)
