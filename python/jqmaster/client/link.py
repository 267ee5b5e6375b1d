"""The server that a `JQ` is for, and the way there: a transport for each event loop, and one for plain calls; and how a
method for coroutines becomes one for plain code."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from jqmaster.client.transport import RedisTransport, Transport
from jqmaster.connection import plainly
from jqmaster.connection import url as redis_url
from jqmaster.engine.scripts import Form
from jqmaster.engine.secret import key_of, masters_of

if TYPE_CHECKING:
    from jqmaster.client.calling import Serializer

T = TypeVar("T")
P = ParamSpec("P")
S = TypeVar("S", bound="Linked")

_END: Any = object()

# Never collected: closing what the parent of this process opened would take it out of the parent's poll.
_of_the_parent: list[Any] = []

Place = tuple[int, asyncio.AbstractEventLoop | None]  # a loop of a process; None: its plain calls, of all threads


@dataclass(frozen=True)
class Target:
    """A Redis or some servers, by `url`. `namespace`: that of a Redis, if one was named; a server has its own."""

    url: str
    namespace: str | None = None
    form: Form = "auto"
    recreate: bool = False
    actor: str | None = None
    key: str | None = None
    key_file: str | os.PathLike[str] | None = None
    wait_s: float = 5.0

    @property
    def is_redis(self) -> bool:
        """Whether `url` is that of a Redis."""
        return redis_url.is_redis(self.url)

    @property
    def redis_namespace(self) -> str:
        """The one that was named, or by the variable `JQ_NAMESPACE`, or `{jq}`."""
        return self.namespace or os.environ.get("JQ_NAMESPACE") or "{jq}"

    @property
    def masters(self) -> list[str]:
        """The URLs of the servers, where `url` is of no Redis. Raises ValueError when it is no URL, or has a user
        or password in it, and when a namespace was named as well."""
        if not self.url.startswith(("http://", "https://")):
            shown = redis_url.without_password(self.url)
            raise ValueError(f"{shown}: expected {redis_url.FORMS}, or http://, https://")
        return masters_of(self.url, self.namespace)

    def check(self) -> None:
        """Raise ValueError for a URL that cannot be."""
        try:
            _ = redis_url.parse(self.url) if self.is_redis else self.masters
        except ValueError as error:
            raise ValueError(f"{redis_url.without_password(self.url)}: {error}") from None

    def key_of_master(self) -> str | None:
        """The key that servers are shown. Raises ValueError if it is invalid, OSError."""
        return key_of(self.key, self.key_file)

    def transport(self) -> Transport:
        """A way there, for plain calls in one, else for the loop that runs. Raises ValueError, OSError."""
        if self.is_redis:
            how = {"form": self.form, "recreate": self.recreate, "actor": self.actor, "timeout_s": self.wait_s}
            return RedisTransport(self.url, self.redis_namespace, **how)
        from jqmaster.client.transport_http import HttpTransport

        return HttpTransport(self.masters, self.key_of_master(), self.wait_s)


def wait_s(wait: float | None) -> float:
    """How long a call may take, also by the variable `JQ_WAIT`. Raises ValueError."""
    seconds = float(os.environ.get("JQ_WAIT") or Target.wait_s if wait is None else wait)
    if not 0 < seconds < math.inf:
        raise ValueError(f"wait: expected seconds, more than 0, got {seconds:g}")
    return seconds


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
