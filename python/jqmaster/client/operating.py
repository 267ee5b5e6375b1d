"""What `JQ` has for those who look after jobs: all operations by their names, and what is more than one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from jqmaster.client.handle import unpacked
from jqmaster.client.limits import Match, limits_of, matcher_of
from jqmaster.client.link import Link, plain, plain_each
from jqmaster.client.operations import PlainOperations
from jqmaster.client.task import Call, When
from jqmaster.engine import options
from jqmaster.engine.calling import contract_of, given
from jqmaster.engine.engine import Operations
from jqmaster.engine.operations import CallsByName
from jqmaster.engine.options import Bounds, Limits, Where, known
from jqmaster.engine.replies import Document, Page
from jqmaster.manifest.manifest import operations

PAGE = 1000


class AsyncOperations(CallsByName):
    """The operations of a `JQ` for coroutines: a method for each."""

    def __init__(self, jq: OperatingMethods) -> None:
        self._jq = jq

    async def call(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        """Run one operation by its name, as `Engine.call` does; values in its documents come unpacked."""
        try:
            contract_of(operation)
        except LookupError as error:
            raise LookupError(f"{error}; for a job of this name there is jq.enqueue({operation!r}, …)") from None
        reply = await (await self._jq.aengine()).call(operation, *arguments, **named)
        return unpacked(reply, self._jq.link.serializer)

    async def grant(self, name: str, roles: Sequence[str], **bounds: Unpack[Bounds]) -> Document:
        """Create a key for masters' HTTP API; nobody can ask again for the `key` in its document."""
        return await (await self._jq.aengine()).grant(name, roles, **bounds)


class OperatingMethods:
    """Every method has an async twin with an `a` before its name. All raise what `jqmaster.errors` has."""

    link: Link

    async def aengine(self) -> Operations:
        """The operations as they are, for the loop that runs, with values packed: see `Engine`."""
        return (await self.link.open()).engine

    @property
    def operations(self) -> PlainOperations:
        """All operations by their names: `jq.operations.kick(ids=[…])`."""
        return PlainOperations(self.link, self.aoperations)

    @property
    def aoperations(self) -> AsyncOperations:
        """The same for coroutines: `await jq.aoperations.kick(ids=[…])`."""
        return AsyncOperations(self)

    async def acall(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        """Run one operation (docs/operations.md): `jq.call("kick", where={"queue": "mail"}, delay=5)`. Type checkers
        know the arguments of `jq.operations.kick`, which is the same. Values in documents come unpacked. Raises
        LookupError for an unknown operation, TypeError for an unknown argument."""
        return await self.aoperations.call(operation, *arguments, **named)

    async def aeach(self, operation: str, /, *arguments: Any, **named: Any) -> AsyncIterator[Any]:
        """All that an operation lists, page after page: `jq.each("queues")`, `jq.each("tags")`."""
        takes = {argument.name for argument in contract_of(operation).arguments}
        if "count" in takes:
            named.setdefault("count", PAGE)
        while True:
            reply = await self.acall(operation, *arguments, **named)
            for row in reply.documents if isinstance(reply, Page) else reply:
                yield row
            if not isinstance(reply, Page) or not reply.cursor:
                return
            named["cursor"] = reply.cursor

    def ajobs(self, *, newest: bool = False, brief: bool = False, **where: Unpack[Where]) -> AsyncIterator[Document]:
        """All jobs that match. `brief`: without argument, result and error. `newest`: the order within a state
        (a tag, a group) is turned round."""
        how = {"newest": newest or None, "brief": brief or None}
        return self.aeach("jobs", conditions(where), **how)

    async def aretry_where(self, *, to: str | None = None, **where: Unpack[Where]) -> int:
        """Have all jobs that match run again, if they failed, were cancelled or wait for a retry; how many. `to`: the
        queue in which they wait from now on."""
        return await self._steps("retry", where, queue=to)

    async def adiscard_where(self, **where: Unpack[Where]) -> int:
        """Remove all there is of the jobs that match and do not run; how many."""
        return await self._steps("discard", where)

    async def acancel_where(self, *, force: bool = False, **where: Unpack[Where]) -> int:
        """Cancel all jobs that match; how many. `force`: see `Handle.cancel`."""
        return await self._steps("cancel", where, force=force or None)

    async def aconstrain(self, constraint_id: str, match: Match, **limits: Unpack[Limits]) -> Document:
        """Limit the jobs that `match`, from now on, also those that are there; replaces a constraint of this
        id whole. `match`: a matcher, `{"name": "mail.*"}`, or a task, which stands for its name. `limits`:
        `by`, `concurrency`, `rate`, `cost` (docs/limits.md). A program declares its
        limits with `limit`. Raises Invalid, Full."""
        return await self.aoperations.constrain(constraint_id, matcher_of(match), **limits_of(limits))

    async def arepeat(self, schedule_id: str, call: Call[Any], **when: Unpack[When]) -> Document:
        """Make a call again and again: `jq.repeat("acme-report", report.job("acme"), cron="0 8 * * mon")`.
        Creates or replaces the schedule of this id; its document, with `next_ms`. Raises Invalid."""
        fields = options.when_of(known(when, When))
        document: Document = await self.acall("schedule", schedule_id, call.spec(), argument=call.argument, **fields)
        return document

    async def aimport_records(self, records: Iterable[bytes], namespace: str) -> int:
        """Write records, such as `each("export")` gives, into another namespace of the same Redis; how many keys.

        It must not be set up (Conflict). Raises Invalid. Repeating it completes an import that broke off.
        """
        return await (await self.link.open()).import_records(records, namespace)

    call, each, jobs = plain(acall), plain_each(aeach), plain_each(ajobs)
    cancel_where, retry_where, discard_where = plain(acancel_where), plain(aretry_where), plain(adiscard_where)
    constrain, repeat, import_records = plain(aconstrain), plain(arepeat), plain(aimport_records)

    async def _steps(self, operation: str, where: Where, **how: Any) -> int:
        fields, cursor, total = conditions(where), None, 0
        while cursor != "":
            cursor, changed = await self.acall(operation, where=fields, cursor=cursor, **how)
            total += changed
        return total

    if not TYPE_CHECKING:  # so that type checkers refuse what there is not

        def __getattr__(self, name: str) -> Any:
            operation = name if name in operations() else name.removeprefix("a")
            hint = f"; the operation is jq.call({operation!r}, …)" if operation in operations() else ""
            raise AttributeError(f"JQ has no {name}{hint}")


def conditions(where: Where) -> dict[str, Any]:
    """`where` as the engine takes it. Raises TypeError for a condition that does not exist."""
    fields = given(**known(where, Where, "condition"))
    if not isinstance(fields.get("status", ""), str):
        fields["status"] = list(fields["status"])
    return fields
