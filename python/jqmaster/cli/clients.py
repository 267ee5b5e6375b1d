"""The client of all commands: `JQ`, on a master or straight on Redis."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import msgpack
import redis.exceptions

from jqmaster.app.app import JQ
from jqmaster.app.handle import unpacked
from jqmaster.cli.reach import Place
from jqmaster.cli.status import EXIT_UNAVAILABLE, EXIT_USAGE, Refused
from jqmaster.engine.engine import Engine, Operations
from jqmaster.engine.replies import Document
from jqmaster.errors import NotFound, Unavailable, from_redis

T = TypeVar("T")


class _Values:
    """Values as they are shown: text need not be UTF-8, and moments stay what they are in MessagePack."""

    def dumps(self, value: Any) -> bytes:
        packed: bytes = msgpack.packb(value, unicode_errors="surrogateescape")
        return packed

    def loads(self, data: bytes) -> Any:
        try:
            return msgpack.unpackb(data, strict_map_key=False, unicode_errors="surrogateescape")
        except msgpack.UnpackException as error:
            raise ValueError(str(error)) from error


class Client(JQ):
    """`JQ` for one command."""

    def __init__(self, where: Place) -> None:
        super().__init__(where.url, namespace=where.namespace, form=where.form, serializer=_Values())

    def ask(self, call: Callable[[Operations], Coroutine[Any, Any, T]]) -> T:
        """Do what no method does in this form."""
        return self.link.run(self._ask(call))

    async def _ask(self, call: Callable[[Operations], Coroutine[Any, Any, T]]) -> T:
        return await call(await self.aengine())

    def ask_redis(self, call: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
        """The same for what a master has no request for."""

        async def asked(engine: Operations) -> T:
            assert isinstance(engine, Engine)
            return await call(engine)

        return self.ask(asked)

    def constraint(self, constraint_id: str) -> Document:
        """Raises NotFound."""
        return _only(self.ask(lambda it: it.constraints([constraint_id])).documents, f"constraint: {constraint_id}")

    def queue_there(self, name: str) -> Document:
        """Raises NotFound."""
        return _only(self.ask(lambda it: it.queues([name])).documents, f"queue: {name}")

    def schedule_there(self, schedule_id: str, *, next: int | None = None) -> Document:
        """Raises NotFound."""
        return _only(self.schedules([schedule_id], next=next), f"schedule: {schedule_id}")

    def set_schedule(
        self, schedule_id: str, job: Mapping[str, Any], argument: bytes, when: Mapping[str, Any]
    ) -> Document:
        """The argument goes as it was packed: binary data and the like would not survive being unpacked."""
        return unpacked(self.ask(lambda it: it.schedule(schedule_id, job, argument, **when)), self.serializer)


def _only(found: list[Document], what: str) -> Document:
    if not found:
        raise NotFound(f"no such {what}")
    return found[0]


@contextmanager
def opened(where: Place, *, creates: bool) -> Iterator[Client]:
    """See `reach.open_client`."""
    client = Client(where)
    try:
        if where.is_redis:
            _check(client, where, creates)
        yield client
    except Unavailable as error:
        if isinstance(getattr(error.cause, "os_error", None), OSError):
            raise Unavailable(
                f"no master answers at {where.shown}. Start one with `jqmaster serve`, or name another "
                "(--url), or a Redis (--redis)"
            ) from error
        raise
    finally:
        client.close()


def _check(client: Client, where: Place, creates: bool) -> None:
    """Whether the namespace is there, which most likely was misspelt otherwise."""

    async def is_there(engine: Engine) -> bool:
        try:
            return bool(await engine.redis.exists(f"{engine.namespace}:meta"))
        except redis.exceptions.RedisError as problem:
            reason = from_redis(problem).message.partition(": ")[2] or str(problem)
            raise Unavailable(f"cannot use Redis at {where.shown}: {reason}") from problem

    try:
        if not client.ask_redis(is_there) and not creates:
            raise Refused(
                f"there is no namespace {where.namespace} in this Redis; `jqmaster load` sets it up",
                EXIT_UNAVAILABLE, "VERSION",
            )  # fmt: skip
    except ValueError as error:
        raise Refused(f"{where.url}: {error}", EXIT_USAGE, "INVALID") from None
