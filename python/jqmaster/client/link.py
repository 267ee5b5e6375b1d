"""The way from a `JQ` to its transports, one for each event loop and one of the portal for plain calls; and
how a method for coroutines becomes one for plain code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from jqmaster.client import portal

if TYPE_CHECKING:
    from jqmaster.client.calling import Serializer
    from jqmaster.client.transport import Transport

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="Linked")

CLOSE_TIMEOUT_S = 5.0
_END: Any = object()

# Never collected: closing what the parent of this process opened would take it out of the parent's poll.
_of_the_parent: list[Any] = []


class _OpenTransport(NamedTuple):
    transport: Transport
    closes: AsyncGenerator[None, None]


class Link:
    """Transports are made on first use, by `make`. They close with their event loop, or when the process
    ends; a forked process makes its own."""

    waits = True
    """Whether what is asked may take its time, for which a loop is needed."""

    def __init__(self, make: Callable[[], Transport], serializer: Serializer) -> None:
        self.serializer = serializer
        self._make = make
        self._made: dict[asyncio.AbstractEventLoop, _OpenTransport] = {}
        self._pid = os.getpid()
        weakref.finalize(self, _end_all, self._made, self._pid).atexit = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run what asks, and wait for it."""
        return portal.run(work)

    async def open(self) -> Transport:
        """The transport of the loop that runs."""
        loop = asyncio.get_running_loop()
        made = self._made.get(loop)
        if made is None or self._pid != os.getpid():
            made = await self._open(loop)
        return made.transport

    def close(self) -> None:
        """Close the connections of all loops. What is asked later opens new ones."""
        if self._pid != os.getpid():
            return
        here = portal.current()
        closing = list(self._made.items())
        self._made.clear()
        for loop, made in closing:
            if loop is here.loop:
                with contextlib.suppress(TimeoutError):
                    here.submit(_end(made)).result(CLOSE_TIMEOUT_S)
            elif loop.is_running():
                asyncio.run_coroutine_threadsafe(_end(made), loop)

    async def _open(self, loop: asyncio.AbstractEventLoop) -> _OpenTransport:
        if self._pid != os.getpid():
            _of_the_parent.append(dict(self._made))
            self._made.clear()
            self._pid = os.getpid()
        for other in [open_loop for open_loop in list(self._made) if open_loop.is_closed()]:
            self._made.pop(other, None)
        transport = self._make()
        made = self._made[loop] = _OpenTransport(transport, _closing(self._made, loop, transport))
        # A loop that is shut down closes its asynchronous generators, whatever it runs by then.
        await anext(made.closes)
        return made


async def _closing(
    made: dict[asyncio.AbstractEventLoop, _OpenTransport], loop: asyncio.AbstractEventLoop, transport: Transport
) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        if loop in made and made[loop].transport is transport:  # else there is another one by now
            del made[loop]
        await transport.close()


async def _end(made: _OpenTransport) -> None:
    await made.closes.aclose()


def _end_all(made: dict[asyncio.AbstractEventLoop, _OpenTransport], pid: int) -> None:
    """When nobody has the link any more. Their loops close them; collected, they would complain."""
    if pid != os.getpid():
        _of_the_parent.append(made)
        return
    for loop, opened in list(made.items()):
        if loop.is_running():
            with contextlib.suppress(RuntimeError):
                asyncio.run_coroutine_threadsafe(_end(opened), loop)


class Linked(Protocol):
    """What has methods for coroutines that ask through a link."""

    @property
    def link(self) -> Link: ...


def plain(method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[S, P], T]:
    """The twin of `method` for plain code: `cancel = plain(acancel)`. It waits for the answer."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.link.run(method(self, *args, **kwargs))

    return _named(call, method)


def plain_each(method: Callable[Concatenate[S, P], AsyncIterator[T]]) -> Callable[Concatenate[S, P], Iterator[T]]:
    """The same for what gives one thing after the other."""

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = method(self, *args, **kwargs)
        try:
            while (item := self.link.run(_next(items))) is not _END:
                yield item
        finally:
            self.link.run(_close(items))

    return _named(call, method)


def _named(call: T, method: Callable[..., Any]) -> T:
    for attribute in ("__name__", "__qualname__"):
        before, dot, name = getattr(method, attribute).rpartition(".")
        setattr(call, attribute, before + dot + name.removeprefix("a"))
    return call


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items, _END)


async def _close(items: AsyncIterator[Any]) -> None:
    if isinstance(items, AsyncGenerator):
        await items.aclose()
