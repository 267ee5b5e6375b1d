"""`system`: several namespaces, its partitions, laid over the nodes of a Redis Cluster."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from jqmaster.cli import show
from jqmaster.cli.options import Client, Coded, Options, Replies, asks
from jqmaster.cli.reach import redis_place
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from jqmaster.engine.scripts import Form


@asks("""system
show the partitions of a system
Needs Redis itself; --namespace is the system's. Exit code 1 if something is
missing or not as recorded.

--key VALUE  only the partition that this value belongs to
""")
@asks("""system show
show the partitions of a system
The same as without a verb.

--key VALUE  only the partition that this value belongs to
""")
def _show(_client: Client, options: Options) -> Coded:
    from jqmaster.system.calls import look

    where = redis_place(options, "system")
    system, partitions = asyncio.run(look(where.url, where.namespace))
    home = None if options.key is None else system.home(options.key.encode(errors="surrogateescape"))
    table = show.Table("PARTITION> | NAMESPACE | STATE | NODE | SLOT> | BUCKETS> | RECORD")
    documents, is_well = [], True
    for one in partitions:
        if home not in (None, one.number):
            continue
        problem = one.problem(system.generation)
        is_well = is_well and not problem
        partition = one.partition
        cells = (str(one.number), partition.namespace, partition.state, one.node or "none", str(partition.slot))
        table.add(*cells, str(one.buckets), (problem, "red") if problem else "ok")
        documents.append(
            {
                "number": one.number, "namespace": partition.namespace, "state": partition.state,
                "node": one.node or None, "slot": partition.slot, "buckets": one.buckets, "problem": problem or None,
            }
        )  # fmt: skip
    table.more = f"{system.root}: generation {system.generation}"
    missing = [one.partition.namespace for one in partitions if one.missing]
    yield (
        {"system": system.root, "generation": system.generation, "partitions": documents, "missing": missing},
        table,
    )
    return EXIT_OK if is_well else EXIT_FAILED


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

    where = redis_place(options, "system create")
    system = asyncio.run(create(where.url, where.namespace, options.partitions, form=where.form))
    names = [one.namespace for one in system.partitions]
    made = {"system": system.root, "generation": system.generation, "namespaces": names}
    yield made, f"{system.root} has {show.counted(len(names), 'partition')}, generation {system.generation}"
