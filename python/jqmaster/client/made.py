"""What `JQ` has of all operations, and short ways to some."""

from __future__ import annotations

from functools import partial

from jqmaster.client.link import Link, plain
from jqmaster.client.listing import all_of
from jqmaster.client.operations import PlainOperations
from jqmaster.engine.engine import Operations
from jqmaster.engine.replies import Document


class MadeMethods:
    """Every method has an async twin with an `a` before its name."""

    link: Link

    async def aengine(self) -> Operations:
        """The operations as they are, for the loop that runs: a method for each, see `Engine`."""
        return (await self.link.open()).engine

    @property
    def operations(self) -> PlainOperations:
        """All operations by their names: `jq.operations.kick(ids=[…])`, `await jq.operations.akick(ids=[…])`."""
        return PlainOperations(self.link)

    async def abulks(self) -> list[Document]:
        """What is done to many jobs. Those under way, and those that ended within an hour, the latest first."""
        return await (await self.aengine()).bulks()

    bulks = plain(abulks)

    async def aforget(self, queue: str) -> None:
        """Take away a queue without jobs. With all its settings. Raises NotFound, Conflict."""
        await (await self.aengine()).forget(queue)

    forget = plain(aforget)

    async def aunconstrain(self, constraint_id: str) -> None:
        """Delete a constraint. What it held is free at once. Raises NotFound."""
        await (await self.aengine()).unconstrain(constraint_id)

    unconstrain = plain(aunconstrain)

    async def ausage(self, constraint_id: str, *, prefix: str | None = None) -> list[Document]:
        """The keys of a constraint that are in use. `by`, `running`, `held`, `opens_ms`, … of each; with `prefix` of
        those whose value begins so. Raises NotFound."""
        return await all_of(partial((await self.aengine()).usage, constraint_id, prefix=prefix))

    usage = plain(ausage)

    async def aunschedule(self, schedule_id: str) -> None:
        """Delete a recurring job. Jobs that it has made stay. Raises NotFound."""
        await (await self.aengine()).unschedule(schedule_id)

    unschedule = plain(aunschedule)

    async def aunsubscribe(self, webhook_id: str) -> None:
        """Delete a webhook. Its deliveries stop. Raises NotFound."""
        await (await self.aengine()).unsubscribe(webhook_id)

    unsubscribe = plain(aunsubscribe)
