"""The way from a `JQ` to its transports: one for each event loop, and one for plain calls; and how a method for
coroutines becomes one for plain code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from jqmaster.connection import plainly

if TYPE_CHECKING:
    from jqmaster.client.calling import Serializer
    from jqmaster.client.transport import Transport

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="Linked")

_END: Any = object()

# Never collected: closing what the parent of this process opened would take it out of the parent's poll.
_of_the_parent: list[Any] = []

Place = tuple[int, asyncio.AbstractEventLoop | None]  # a loop of a process; None: its plain calls, of all threads


class _OpenTransport(NamedTuple):
    transport: Transport
    closes: AsyncGenerator[None, None]  # closes it in its loop


class Link:
    """Transports are made on first use, by `make`. That of a loop closes with it, that of plain calls when the process
    ends; a forked process makes its own."""

    def __init__(self, make: Callable[[], Transport], serializer: Serializer) -> None:
        self.serializer = serializer
        self._make = make
        self._made: dict[Place, _OpenTransport] = {}
        weakref.finalize(self, _end_all, self._made).atexit = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run what asks, in this thread."""
        return plainly.run(work)

    async def open(self) -> Transport:
        """The transport of plain calls in one, else that of the loop that runs."""
        place = os.getpid(), None if plainly.is_plain() else asyncio.get_running_loop()
        opened = self._made.get(place) or await self._open(place)
        return opened.transport

    def close(self) -> None:
        """Close the connections of all loops, and of plain calls. What is asked later opens new ones."""
        opened = self._made.pop((os.getpid(), None), None)
        if opened is not None:
            plainly.run(opened.transport.close())
        _end_all(self._made)
        self._made.clear()

    async def _open(self, place: Place) -> _OpenTransport:
        for other in [other for other in list(self._made) if other[1] is not None and other[1].is_closed()]:
            self._made.pop(other, None)
        transport = self._make()
        # Of threads that come here at the same time all go on with one.
        opened = self._made.setdefault(place, _OpenTransport(transport, _closing(self._made, place, transport)))
        if place[1] is not None:
            # A loop that is shut down closes its asynchronous generators, whatever it runs by then.
            await anext(opened.closes)
        return opened


async def _closing(made: dict[Place, _OpenTransport], place: Place, transport: Transport) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        if place in made and made[place].transport is transport:  # else there is another one by now
            del made[place]
        await transport.close()


def _end_all(made: dict[Place, _OpenTransport]) -> None:
    """When nobody needs them any more. Their loops close them; collected, they would complain."""
    for (pid, loop), opened in list(made.items()):
        if pid != os.getpid():
            _of_the_parent.append(opened)
        elif loop is not None and loop.is_running():
            with contextlib.suppress(RuntimeError):
                asyncio.run_coroutine_threadsafe(opened.closes.aclose(), loop)


class Linked(Protocol):
    """What has methods for coroutines that ask through a link."""

    @property
    def link(self) -> Link: ...


def plain(method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[S, P], T]:
    """The twin of `method` for plain code: `cancel = plain(acancel)`. It blocks."""

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
            if isinstance(items, AsyncGenerator):
                self.link.run(items.aclose())

    return _named(call, method)


def _named(call: T, method: Callable[..., Any]) -> T:
    for attribute in ("__name__", "__qualname__"):
        before, dot, name = getattr(method, attribute).rpartition(".")
        setattr(call, attribute, before + dot + name.removeprefix("a"))
    return call


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items, _END)
