"""`system`: several namespaces, its partitions, laid over the nodes of a Redis Cluster."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from jqmaster.cli import show
from jqmaster.cli.options import Client, Coded, Options, Replies, asks
from jqmaster.cli.reach import redis_place
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from jqmaster.engine.scripts import Form
    from jqmaster.system.calls import Seen
    from jqmaster.system.record import System


@asks("""system
show the partitions of a system
Needs Redis itself; --namespace is the system's. Exit code 1 if something is
missing, not as recorded, or has other settings than partition 0.

--key VALUE  only the partition that this value belongs to
""")
@asks("""system show
show the partitions of a system
The same as without a verb.

--key VALUE  only the partition that this value belongs to
""")
def _show(_client: Client, options: Options) -> Coded:
    from jqmaster.system.calls import look

    where = redis_place(options, "system", of_system=True)
    system, partitions = asyncio.run(look(where.url, where.namespace))
    differing = asyncio.run(_behind(where.url, system, partitions))
    home = None if options.key is None else system.home(options.key.encode(errors="surrogateescape"))
    table = show.Table("PARTITION> | NAMESPACE | STATE | NODE | SLOT> | BUCKETS> | RECORD | SETTINGS")
    documents, is_well = [], True
    for one in partitions:
        if home not in (None, one.number):
            continue
        problem = one.problem(system.generation)
        behind = differing.get(one.number)
        is_well = is_well and not problem and not behind
        partition = one.partition
        cells = (str(one.number), partition.namespace, partition.state, one.node or "none", str(partition.slot))
        its = ("not known", "red") if behind is None else ("behind", "red") if behind else "ok"
        table.add(*cells, str(one.buckets), (problem, "red") if problem else "ok", its)
        documents.append(
            {
                "number": one.number, "namespace": partition.namespace, "state": partition.state,
                "node": one.node or None, "slot": partition.slot, "buckets": one.buckets, "problem": problem or None,
                "behind": behind,
            }
        )  # fmt: skip
    lines = [f"partition {number} is behind: {', '.join(what)}" for number, what in sorted(differing.items()) if what]
    lines += ["`system sync` brings it to what partition 0 has"] if lines else []
    table.more = "\n".join([*lines, f"{system.root}: generation {system.generation}"])
    missing = [one.partition.namespace for one in partitions if one.missing]
    yield (
        {"system": system.root, "generation": system.generation, "partitions": documents, "missing": missing},
        table,
    )
    return EXIT_OK if is_well else EXIT_FAILED


async def _behind(url: str, system: System, partitions: Sequence[Seen]) -> dict[int, list[str]]:
    """By the numbers of partitions, which settings differ from those of partition 0; only where that is known."""
    from jqmaster.errors import JQError
    from jqmaster.system import settings
    from jqmaster.system.engine import SystemEngine

    # A namespace that has vanished would be set up by being asked.
    answering = [one.number for one in partitions if not one.missing and one.copy is not None]
    if 0 not in answering:
        return {}
    engine = SystemEngine(url, system.root)
    try:
        engines = await engine.partitions()
        found = await settings.behind([engines[number] for number in answering])
    except JQError:
        return {}
    finally:
        await engine.close()
    told = zip(answering, found, strict=True)
    return {number: [each.what for each in one] for number, one in told if not isinstance(one, JQError)}


@asks("""system sync
bring the settings of all partitions to what partition 0 has
Settings, those of queues, webhooks and keys: what a partition did not get when
it was set. Needs Redis itself; --namespace is the system's. Safe to repeat.
""")
def _sync(_client: Client, options: Options) -> Replies:
    from jqmaster.system import settings
    from jqmaster.system.engine import SystemEngine

    where = redis_place(options, "system sync", of_system=True)

    async def synced() -> list[list[str]]:
        engine = SystemEngine(where.url, where.namespace, form=where.form)
        try:
            return await settings.sync(engine)
        finally:
            await engine.close()

    brought = asyncio.run(synced())
    lines = [f"partition {number}: {', '.join(what)}" for number, what in enumerate(brought) if what]
    documents = [{"number": number, "brought": what} for number, what in enumerate(brought)]
    yield {"partitions": documents}, "\n".join(lines) or "all partitions have the settings of partition 0"


@asks("""system balance
share limits out among the partitions, until it is stopped
Constraints of a system start nothing while nobody does. Any number may run:
one at a time works, and when it stops another goes on. Needs Redis itself.
""")
def _balance(_client: Client, options: Options) -> Replies:
    where = redis_place(options, "system balance")
    asyncio.run(_until_stopped(where.url, where.namespace, where.form))
    yield None, ""


async def _until_stopped(url: str, namespace: str, form: Form) -> None:
    from jqmaster.system.balance import Balancer
    from jqmaster.system.engine import SystemEngine

    engine = SystemEngine(url, namespace, form=form)
    try:
        task = asyncio.ensure_future(Balancer(await engine.partitions()).run())
        for one in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(one, task.cancel)
        with suppress(asyncio.CancelledError):
            await task
    finally:
        await engine.close()


@asks(
    """system create
make a system of several partitions
Partition 0 is the namespace itself, with what it has; the others are new and
spread evenly over the nodes of the cluster. Needs Redis itself. Safe to repeat.

partitions N(2..256)  how many
""",
    creates=True,
)
def _create(_client: Client, options: Options) -> Replies:
    from jqmaster.system.calls import create

    where = redis_place(options, "system create", of_system=True)
    system = asyncio.run(create(where.url, where.namespace, options.partitions, form=where.form))
    names = [one.namespace for one in system.partitions]
    made = {"system": system.root, "generation": system.generation, "namespaces": names}
    yield made, f"{system.root} has {show.counted(len(names), 'partition')}, generation {system.generation}"
