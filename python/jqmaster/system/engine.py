"""The operations of a system as if it were one namespace: each call goes to the partitions that it concerns.

Semantics stay in the scripts: here calls are taken apart, carried and put together again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from jqmaster.engine.calls import Argument
from jqmaster.engine.durable import Durable
from jqmaster.engine.engine import Engine, Operations
from jqmaster.errors import Invalid
from jqmaster.system import enqueueing, jobs, reading, settings, working
from jqmaster.system.partitions import Call, not_yet
from jqmaster.system.routing import is_spec
from jqmaster.system.working import Working
from jqmaster.wire.operations import OPERATIONS as TABLE
from jqmaster.wire.operations import going


class SystemEngine(Working, Operations):
    """``url`` is that of the cluster, or server, ``root`` the system's name, or that of another of its partitions,
    which does while partition 0 is away. The record is read, and connections are made, with the first call.

    Operations that do not work over partitions yet raise Invalid, which names the operation: ask one partition
    (``partitions``), or each. A call that concerns several partitions goes to all of them at once; what one refuses
    is raised, and the others have done their part: each is all or nothing for itself.
    """

    async def call(self, operation: str, *arguments: Argument) -> Any:
        call = Call(operation, arguments)
        way = _WAYS.get(operation)
        if way is None:
            raise not_yet(operation)
        if _is_malformed(operation, arguments):
            await call.at((await self.partitions())[0])  # the script says what is wrong
            raise Invalid("expected one map, of valid UTF-8", "spec")
        return _as_sent(await way(self, call))

    async def call_durably(
        self, operation: str, arguments: Sequence[Argument], durable: Durable
    ) -> tuple[Any, str | None]:
        lacking: list[str] = []

        async def call(engine: Engine, part: Sequence[Argument]) -> Any:
            reply, problem = await engine.call_durably(operation, part, durable)
            if problem:
                lacking.append(problem)
            return reply

        return await enqueueing.enqueue(self, call, arguments), next(iter(lacking), None)


async def _enqueue(system: Working, call: Call) -> Any:
    return await enqueueing.enqueue(system, lambda engine, part: engine.call(call.operation, *part), call.arguments)


def _as_sent(reply: Any) -> Any:
    """Texts of a reply as Redis gives them."""
    if isinstance(reply, str):
        return reply.encode("utf-8", "surrogateescape")
    return [_as_sent(one) for one in reply] if isinstance(reply, list) else reply


_ONE_SPEC = {one.script for one in TABLE.values() if one.is_plain} - {"schedule"} | {"audit", "pick"}
_ONE_ID = {one.script for one in TABLE.values() if one.bare} & {*going("job")}


def _is_malformed(operation: str, arguments: Sequence[Argument]) -> bool:
    """Whether the arguments are not those that an operation is taken apart by."""
    if operation in _ONE_ID:
        return len(arguments) != 1
    if operation in _ONE_SPEC:
        return len(arguments) != 1 or not is_spec(arguments[0])
    if operation == "constrain":
        return not arguments or not is_spec(arguments[0])
    return operation in ("change", "get", "watch") and (
        not arguments or (operation == "change" and len(arguments) % 2 > 0)
    )


_WAYS: dict[str, Callable[[SystemEngine, Call], Awaitable[Any]]] = {
    "enqueue": _enqueue,
    **jobs.WAYS,
    **reading.WAYS,
    **settings.WAYS,
    **working.WAYS,
}
OPERATIONS = frozenset(_WAYS)
Whole = Engine | SystemEngine
"""A namespace alone, or a system."""
