"""Requests behind which no script stands: each is declared beside its handler, in the words of a script's head."""

from __future__ import annotations

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


def own(name: str, head: str) -> Callable[[Handler], Own]:
    """Have a handler answer what ``head`` says."""
    return lambda handler: Own(heads.read(name, head + "\n@argv nothing\n@flags read"), handler)
