"""The client of all commands: `JQ`, on a master or straight on Redis."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import msgpack

from jqmaster.app.app import JQ
from jqmaster.app.handle import unpacked
from jqmaster.cli import show
from jqmaster.engine.engine import Engine, Operations
from jqmaster.engine.replies import Document
from jqmaster.engine.scripts import Form
from jqmaster.errors import NotFound

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

    def __init__(self, url: str, namespace: str, form: Form, key_file: str | None = None) -> None:
        super().__init__(
            url, namespace=namespace, form=form, serializer=_Values(), key_file=key_file, actor=_user_and_host()
        )

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


def _user_and_host() -> str:
    """For the trail. No account is needed for a process to run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return show.plain(f"{user}@{socket.gethostname()}").encode()[:100].decode(errors="ignore")


def _only(found: list[Document], what: str) -> Document:
    if not found:
        raise NotFound(f"no such {what}")
    return found[0]
