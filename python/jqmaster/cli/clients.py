"""The client of all commands: `JQ`, on a server or straight on Redis."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgpack
import redis.exceptions

from jqmaster.cli import show
from jqmaster.cli.status import Refused
from jqmaster.client.app import JQ
from jqmaster.connection import plainly
from jqmaster.connection.url import without_password
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
    """`JQ` for one command; `where`: of `JQ`. `creates`: straight on Redis, a namespace that is not there is set up;
    else it is refused, as it would be a slip of the finger."""

    def __init__(self, url: str, *, creates: bool = False, **where: Any) -> None:
        super().__init__(url, serializer=_Values(), actor=_user_and_host(), **where)
        self._shown, self._creates = without_password(url), creates
        self._is_known = not self.target.is_redis

    async def aengine(self) -> Operations:
        try:
            engine = await super().aengine()
        except ValueError as error:
            raise Refused(f"{self._shown}: {error}", "INVALID") from None
        if not self._is_known:
            assert isinstance(engine, Engine)
            try:
                is_there = await engine.redis.exists(f"{engine.namespace}:meta")
            except redis.exceptions.RedisError as problem:
                reason = from_redis(problem).message.partition(": ")[2] or str(problem)
                raise Unavailable(f"cannot use Redis at {self._shown}: {reason}") from problem
            if not is_there and not self._creates:
                missing = f"there is no namespace {self.namespace} in this Redis; `jqmaster load` sets it up"
                raise Refused(missing, "VERSION")
            self._is_known = True
        return engine

    def ask(self, call: Callable[[Operations], Coroutine[Any, Any, T]]) -> T:
        """Do what no method does in this form."""
        return plainly.run(self._ask(call))

    async def _ask(self, call: Callable[[Operations], Coroutine[Any, Any, T]]) -> T:
        return await call(await self.aengine())

    def there(self, operation: str, name: str, **more: Any) -> Document:
        """The one of the queues, constraints, schedules or workers that is named so. Raises NotFound."""
        for found in self.call(operation, [name], **more).documents:
            document: Document = found
            return document
        raise NotFound(f"no such {operation.removesuffix('s').replace('constraint', 'limit')}: {name}")


def _user_and_host() -> str:
    """For the trail. No account is needed for a process to run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return show.plain(f"{user}@{socket.gethostname()}").encode()[:100].decode(errors="ignore")
