"""The way from a `JQ` to its transports: one for each event loop, and one of the portal for plain calls."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from jqmaster.app import portal
from jqmaster.engine.replies import Enqueued

if TYPE_CHECKING:
    from jqmaster.app.calling import Serializer
    from jqmaster.app.task import Call
    from jqmaster.app.transport import Prepared, Transport

T = TypeVar("T")

CLOSE_TIMEOUT_S = 5.0

# Never collected: closing what the parent of this process opened would take it out of the parent's poll.
_of_the_parent: list[Any] = []


class _Made(NamedTuple):
    transport: Transport
    closes: AsyncGenerator[None, None]


class Link:
    """Transports are made on first use, by `make`. They close with their event loop, or when the process
    ends; a forked process makes its own."""

    def __init__(self, make: Callable[[], Transport], serializer: Serializer) -> None:
        self.serializer = serializer
        self._make = make
        self._made: dict[asyncio.AbstractEventLoop, _Made] = {}
        self._pid = os.getpid()
        weakref.finalize(self, _end_all, self._made, self._pid).atexit = False

    def run(self, call: Callable[[Transport], Coroutine[Any, Any, T]]) -> T:
        """Ask, and wait for the answer."""
        return portal.run(self.arun(call))

    async def arun(self, call: Callable[[Transport], Coroutine[Any, Any, T]]) -> T:
        """The same in a coroutine."""
        loop = asyncio.get_running_loop()
        made = self._made.get(loop)
        if made is None or self._pid != os.getpid():
            made = await self._open(loop)
        return await call(made.transport)

    def enqueue(self, _calls: Sequence[Call[Any]], prepared: Sequence[Prepared], request: str | None) -> list[Enqueued]:
        """Enqueue calls, which are `prepared`."""
        return self.run(lambda transport: transport.enqueue(prepared, request))

    async def aenqueue(
        self, _calls: Sequence[Call[Any]], prepared: Sequence[Prepared], request: str | None
    ) -> list[Enqueued]:
        """As `enqueue`."""
        return await self.arun(lambda transport: transport.enqueue(prepared, request))

    def close(self) -> None:
        """Close the connections of all loops. What is asked later opens new ones."""
        if self._pid != os.getpid():
            return
        here = portal.current()
        for loop, made in list(self._made.items()):
            if loop is here.loop:
                with contextlib.suppress(TimeoutError):
                    here.submit(_end(made)).result(CLOSE_TIMEOUT_S)
            elif loop.is_running():
                asyncio.run_coroutine_threadsafe(_end(made), loop)

    async def _open(self, loop: asyncio.AbstractEventLoop) -> _Made:
        if self._pid != os.getpid():
            _of_the_parent.append(dict(self._made))
            self._made.clear()
            self._pid = os.getpid()
        for other in [one for one in self._made if one.is_closed()]:
            del self._made[other]
        transport = self._make()
        made = self._made[loop] = _Made(transport, _closing(self._made, loop, transport))
        # A loop that is shut down closes its asynchronous generators, whatever it runs by then.
        await anext(made.closes)
        return made


async def _closing(
    made: dict[asyncio.AbstractEventLoop, _Made], loop: asyncio.AbstractEventLoop, transport: Transport
) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        made.pop(loop, None)
        await transport.close()


async def _end(made: _Made) -> None:
    await made.closes.aclose()


def _end_all(made: dict[asyncio.AbstractEventLoop, _Made], pid: int) -> None:
    """When nobody has the link any more. Their loops close them; collected, they would complain."""
    if pid != os.getpid():
        _of_the_parent.append(made)
        return
    for loop, one in list(made.items()):
        if loop.is_running():
            with contextlib.suppress(RuntimeError):
                asyncio.run_coroutine_threadsafe(_end(one), loop)
