"""The server that a `JQ` is for, and the way there: a transport for each event loop, and one for plain calls; and how a
method for coroutines becomes one for plain code."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast
from urllib.parse import quote

from jqmaster.cluster.cluster import open_engine
from jqmaster.connection import plainly
from jqmaster.connection import url as redis_url
from jqmaster.connection.subscriptions import listened
from jqmaster.engine.ended import ENDED, Ended, glance
from jqmaster.engine.engine import Operations, pack
from jqmaster.engine.options import NewJob
from jqmaster.engine.replies import Enqueued, document
from jqmaster.engine.secret import key_of, masters_of
from jqmaster.errors import NotFound

if TYPE_CHECKING:
    from jqmaster.client.calling import Serializer

T = TypeVar("T")
P = ParamSpec("P")

WAIT_S = 5.0  # how long a call of a master may take, if nobody says it
MOST_POLL_S = 10.0
MOST_POLLS = 256  # connections to a master for those who wait; more take turns

_END: Any = object()
Place = tuple[int, asyncio.AbstractEventLoop | None]  # a loop of a process; None: its plain calls, of all threads


@dataclass(frozen=True)
class Target:
    """A Redis or some servers, by `url`. `namespace`: that of a Redis, if one was named; a server has its own."""

    url: str
    namespace: str | None = None
    recreate: bool = False
    actor: str | None = None
    key: str | None = None
    key_file: str | os.PathLike[str] | None = None
    wait_s: float | None = None

    @property
    def is_redis(self) -> bool:
        """Whether `url` is one of a Redis."""
        return redis_url.is_redis(self.url)

    @property
    def redis_namespace(self) -> str:
        """The one that was named, or by the variable `JQ_NAMESPACE`, or `{jq}`."""
        return self.namespace or os.environ.get("JQ_NAMESPACE") or "{jq}"

    def masters(self) -> tuple[list[str], str | None]:
        """The URLs of the servers, and the key that they are shown. Raises ValueError when one cannot be, and when a
        namespace was named as well; OSError."""
        return masters_of(self.url, self.namespace), key_of(self.key, self.key_file)

    def transport(self) -> Transport:
        """A way there, for plain calls in one, else for the loop that runs. Raises ValueError, OSError."""
        return RedisTransport(self) if self.is_redis else HttpTransport(self)


class Transport:
    """Calls of one event loop, or plain ones. All raise the classes of `jqmaster.errors`; what is packed stays
    bytes."""

    def __init__(self, engine: Operations) -> None:
        self.engine = engine

    async def enqueue(self, jobs: Sequence[NewJob], request: str | None) -> list[Enqueued]:
        """Up to 1000 jobs: all or none."""
        # A number in `depends` is a place in a call, which others may share.
        if len(jobs) > 1 or request is not None or "depends" in jobs[0][0]:
            return await self.engine.enqueue(jobs, request=request)
        [(spec, argument)] = jobs
        job_id, created = await self.engine.raw("enqueue", pack(spec, "jobs[0]"), argument)
        return [Enqueued(job_id.decode(), bool(created))]

    async def ended(self, job_id: str, timeout_s: float) -> str:
        """The state once it has ended, however it did, or after so long. Raises NotFound."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the connections; bounded."""


class RedisTransport(Transport):
    """By the scripts, with no master in between. In an event loop those who ask at the same time share calls, and one
    subscription; of plain calls each who waits listens on a connection of their own."""

    def __init__(self, target: Target) -> None:
        self._redis = open_engine(
            target.url, target.redis_namespace, recreate=target.recreate, actor=target.actor,
            timeout_s=target.wait_s,
        )  # fmt: skip
        super().__init__(self._redis)
        self._ended = None if plainly.is_plain() else Ended(self._redis)

    async def ended(self, job_id: str, timeout_s: float) -> str:
        if self._ended is not None:
            state = await self._ended.wait(job_id.encode(), timeout_s)
        elif timeout_s <= 0:
            state = await glance(self._redis, job_id.encode())
        else:
            state = await self._listen(job_id, time.monotonic() + timeout_s)
        if state is None:
            raise NotFound(f"no such job: {job_id}")
        return state

    async def close(self) -> None:
        if self._ended is not None:
            await self._ended.stop()
        await self._redis.close()

    async def _listen(self, job_id: str, until: float) -> str | None:
        """As `Ended.wait`, for one who blocks."""
        state = await self._look(job_id)
        if state is None or state in ENDED:
            return state
        engine = self._redis.of(job_id)
        heard = listened(engine.redis, f"{engine.namespace}:ended", until)
        async with contextlib.aclosing(heard):
            async for message in heard:
                if not message:
                    state = await self._look(job_id)
                elif message.startswith(job_id.encode() + b" "):
                    state = message.partition(b" ")[2].decode()
                if state is None or state in ENDED:
                    return state
        # Nobody may be told that a job goes on which has ended, only because nothing was heard of it.
        return await self._look(job_id)

    async def _look(self, job_id: str) -> str | None:
        [state] = await self.engine.raw("watch", job_id)
        return None if state is None else bytes(state).decode()


class HttpTransport(Transport):
    """By a master."""

    def __init__(self, target: Target) -> None:
        from jqmaster.engine.http import HttpEngine

        self._wait_s, self._polls = target.wait_s or WAIT_S, plainly.Turns(MOST_POLLS)
        self._http = HttpEngine(*target.masters(), self._wait_s)
        super().__init__(self._http)

    async def ended(self, job_id: str, timeout_s: float) -> str:
        poll_s = min(max(0.0, timeout_s), MOST_POLL_S)
        path = f"/job/{quote(job_id, safe='')}/polling"
        async with self._polls:
            answer = await self._http.send("GET", path, wait_s=poll_s, timeout_s=poll_s + self._wait_s)
        return "waiting" if answer.status == 408 else str(document(answer.body)["status"])

    async def close(self) -> None:
        await self._http.close()


class Link:
    """Transports are made on first use, by `make`. That of a loop closes with it, that of plain calls when the process
    ends; a forked process makes its own."""

    def __init__(self, make: Callable[[], Transport], serializer: Serializer) -> None:
        self.serializer = serializer
        self._make = make
        self._made: dict[Place, tuple[Transport, AsyncGenerator[None, None]]] = {}
        weakref.finalize(self, _close, self._made)

    async def open(self) -> Transport:
        """The transport of plain calls in one, else that of the loop that runs."""
        place = os.getpid(), None if plainly.is_plain() else asyncio.get_running_loop()
        opened = self._made.get(place)
        return await self._open(place) if opened is None else opened[0]

    def close(self) -> None:
        """Close the connections of all loops, and of plain calls. What is asked later opens new ones."""
        _close(self._made)

    async def _open(self, place: Place) -> Transport:
        for other in [other for other in list(self._made) if other[1] is not None and other[1].is_closed()]:
            self._made.pop(other, None)
        transport = self._make()
        # Of threads that come here at the same time all go on with one.
        transport, closing = self._made.setdefault(place, (transport, _closing(transport)))
        if place[1] is not None:
            # A loop that is shut down closes its asynchronous generators, whatever it runs by then.
            await anext(closing)
        return transport


def _close(made: dict[Place, tuple[Transport, AsyncGenerator[None, None]]]) -> None:
    """What a parent process has made is its own."""
    for place in [place for place in made if place[0] == os.getpid()]:
        transport, closing = made.pop(place)
        loop = place[1]
        if loop is None:
            plainly.run(transport.close())
        elif loop.is_running():
            with contextlib.suppress(RuntimeError):  # it has closed meanwhile
                asyncio.run_coroutine_threadsafe(closing.aclose(), loop)


async def _closing(transport: Transport) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await transport.close()


def plain(method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The twin of `method` for plain code: `cancel = plain(acancel)`. It blocks."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        return plainly.run(method(*args, **kwargs))

    return _named(call, method)


def plain_each(method: Callable[P, AsyncGenerator[T, None]]) -> Callable[P, Iterator[T]]:
    """The same for what gives one thing after the other."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = method(*args, **kwargs)
        try:
            while (item := plainly.run(cast(Any, anext(items, _END)))) is not _END:
                yield item
        finally:
            plainly.run(items.aclose())

    return _named(call, method)


def _named(call: Callable[P, T], method: Callable[..., Any]) -> Callable[P, T]:
    call.__name__ = method.__name__[1:]
    call.__qualname__ = method.__qualname__.removesuffix(method.__name__) + call.__name__
    return call
