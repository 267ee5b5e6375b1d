"""What `JQ` has for those who look after jobs: all operations by their names, and what is more than one of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, Unpack, cast

from jqmaster.client.handle import unpacked
from jqmaster.client.link import Link, plain, plain_each
from jqmaster.client.operations import PlainOperations
from jqmaster.client.task import Call, When, calls_of
from jqmaster.engine import options
from jqmaster.engine.calling import contract_of, given
from jqmaster.engine.engine import Operations
from jqmaster.engine.options import Where, known
from jqmaster.engine.replies import Document, Page
from jqmaster.manifest.manifest import operations

PAGE = 1000


class OperatingMethods:
    """Every method has an async twin with an `a` before its name. All raise what `jqmaster.errors` has."""

    link: Link

    async def aengine(self) -> Operations:
        """The operations as they are, for the loop that runs, with values packed: see `Engine`."""
        return (await self.link.open()).engine

    @property
    def operations(self) -> PlainOperations:
        """All operations by their names: `jq.operations.kick(ids=[…])`, which is `jq.call("kick", ids=[…])`."""
        return PlainOperations(self.call)

    @property
    def aoperations(self) -> Operations:
        """The same for coroutines: `await jq.aoperations.kick(ids=[…])`."""
        return cast(Operations, PlainOperations(self.acall))

    async def acall(self, operation: str, /, *arguments: Any, **named: Any) -> Any:
        """Run one operation (docs/operations.md): `jq.call("kick", where={"queue": "mail"}, delay=5)`. Type checkers
        know the arguments of `jq.operations.kick`, which is the same. Values in documents come unpacked. What changes
        all jobs that match (`where`) does so in steps, all of them unless `cursor` or `count` is given; `changed` is
        how many in all. Raises LookupError for an unknown operation, TypeError for an unknown argument."""
        try:
            contract_of(operation)
        except LookupError as error:
            raise LookupError(f"{error}; for a job of this name there is jq.enqueue({operation!r}, …)") from None
        method = getattr(await self.aengine(), operation)
        reply = await method(*arguments, **named)
        if hasattr(reply, "changed") and not named.keys() & {"cursor", "count"}:
            while reply.cursor:
                step = await method(*arguments, **named, cursor=reply.cursor)
                reply = step._replace(changed=reply.changed + step.changed)
        return unpacked(reply, self.link.serializer)

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
        conditions = given(**known(where, Where, "condition"))
        return self.aeach("jobs", conditions, newest=newest or None, brief=brief or None)

    async def arepeat(self, schedule_id: str, call: Call[Any], **when: Unpack[When]) -> Document:
        """Make a call again and again: `jq.repeat("acme-report", report.job("acme"), cron="0 8 * * mon")`.
        Creates or replaces the schedule of this id; its document, with `next_ms`. Raises Invalid."""
        fields = options.when_of(known(when, When))
        [call] = calls_of(call)
        document: Document = await self.acall("schedule", schedule_id, call.spec(), argument=call.argument, **fields)
        return document

    async def aimport_records(self, records: Iterable[bytes], namespace: str) -> int:
        """Write records, such as `each("export")` gives, into another namespace of the same Redis; how many.

        It must not be set up (Conflict). Raises Invalid. Repeating it completes an import that broke off.
        """
        return await (await self.link.open()).import_records(records, namespace)

    call, each, jobs = plain(acall), plain_each(aeach), plain_each(ajobs)
    repeat, import_records = plain(arepeat), plain(aimport_records)

    if not TYPE_CHECKING:  # so that type checkers refuse what there is not

        def __getattr__(self, name: str) -> Any:
            operation = name if name in operations() else name.removeprefix("a")
            hint = f"; the operation is jq.call({operation!r}, …)" if operation in operations() else ""
            raise AttributeError(f"JQ has no {name}{hint}")
