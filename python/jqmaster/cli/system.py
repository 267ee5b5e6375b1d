"""`system`: several namespaces, its partitions, laid over the nodes of a Redis Cluster."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show
from jqmaster.cli.options import Client, Coded, Options, Replies, asks
from jqmaster.cli.reach import redis_place
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK, Refused

if TYPE_CHECKING:
    from jqmaster.engine.scripts import Form
    from jqmaster.system.looking import Look

_SETTINGS_S = 30.0


@asks("""system
show the partitions of a system
Needs Redis itself; --namespace is the system's. Exit code 1 if something is
missing, not as recorded, or has other settings than the latest.

--key VALUE  only the partition that this value belongs to
""")
@asks("""system show
show the partitions of a system
The same as without a verb.

--key VALUE  only the partition that this value belongs to
""")
def _show(_client: Client, options: Options) -> Coded:
    where = redis_place(options, "system", of_system=True)
    found, behind = asyncio.run(_looked(where.url, where.namespace))
    document = found.document(behind)
    home = None if options.key is None else found.system.home(options.key.encode(errors="surrogateescape"))
    document["partitions"] = [one for one in document["partitions"] if home in (None, one["number"])]
    is_well = not any(one["problem"] or one["behind"] for one in document["partitions"])
    yield document, _table(document)
    return EXIT_OK if is_well else EXIT_FAILED


async def _looked(url: str, namespace: str) -> tuple[Look, dict[int, list[str]]]:
    from jqmaster.system import looking
    from jqmaster.system.engine import SystemEngine

    engine = SystemEngine(url, namespace)
    try:
        found = await looking.look(engine)
        return found, await looking.compare(engine, found, within_s=_SETTINGS_S)
    finally:
        await engine.close()


def _table(document: dict[str, Any]) -> show.Table:
    table = show.Table(
        "PARTITION> | NAMESPACE | STATE | NODE | SLOT> | BUCKETS> | READY> | RUNNING> | OLDEST> | RECORD | SETTINGS"
    )
    lines = []
    for one in document["partitions"]:
        least = "+" if one.get("more") else ""
        jobs = (f"{show.count(one[name])}{least}" if name in one else "" for name in ("queued", "running"))
        since_ms = one.get("oldest_ready_ms")
        oldest = show.coarse(max(0, document["now_ms"] - since_ms) / 1000) if since_ms else ""
        record = (one["problem"], "red") if one["problem"] else "ok"
        settings = ("not known", "red") if one["behind"] is None else ("behind", "red") if one["behind"] else "ok"
        if one["state"] == "closed":
            record = settings = ""
        cells = (one["number"], one["namespace"], one["state"], one["node"] or "none", one["slot"], one["buckets"])
        table.add(*cells, *jobs, oldest, record, settings)
        if one["behind"]:
            lines.append(f"partition {one['number']} is behind: {', '.join(one['behind'])}")
    lines += ["`system sync` brings it the latest settings"] if lines else []
    lines += [f"queue {queue}: route {path}" for queue, path in sorted(document["routes"].items())]
    table.more = "\n".join([*lines, f"{document['system']}: generation {document['generation']}"])
    return table


@asks("""system sync
bring all partitions the latest settings
The record of the system, settings, those of queues, webhooks, keys and limits
of all: what a partition did not get when it was set. Needs Redis itself;
--namespace is the system's. Safe to repeat.
""")
def _sync(_client: Client, options: Options) -> Replies:
    from jqmaster.system import bringing, calls
    from jqmaster.system.engine import SystemEngine

    where = redis_place(options, "system sync", of_system=True)

    async def synced() -> dict[int, list[str]]:
        await calls.tell(where.url, await calls.latest(where.url, where.namespace), form=where.form)
        engine = SystemEngine(where.url, where.namespace, form=where.form)
        try:
            return dict(zip(await engine.live(), await bringing.sync(engine), strict=True))
        finally:
            await engine.close()

    brought = asyncio.run(synced())
    lines = [f"partition {number}: {', '.join(what)}" for number, what in brought.items() if what]
    documents = [{"number": number, "brought": what} for number, what in brought.items()]
    yield {"partitions": documents}, "\n".join(lines) or "all partitions have the latest settings"


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
    from jqmaster.system.balance import balance
    from jqmaster.system.engine import SystemEngine

    engine = SystemEngine(url, namespace, form=form)
    try:
        task = asyncio.ensure_future(balance(engine))
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


@asks(
    """system route
keep jobs of a queue together by a value of theirs
Those of one value are in one partition, so that limits by it, and order among
them, hold in the whole system. The queue must not have jobs that have not
ended. Needs Redis itself; --namespace is the system's. Safe to repeat.

queue NAME
path VALUE?  such as argument.customer; or queue, which keeps all of them in one
--none       no route
"""
)
def _route(_client: Client, options: Options) -> Replies:
    from jqmaster.system.resizing import route

    where = redis_place(options, "system route", of_system=True)
    if (options.path is None) == (not options.none):
        raise Refused("say a path, or --none", "INVALID")
    system = asyncio.run(route(where.url, where.namespace, options.queue, options.path, form=where.form))
    told = "no route" if options.none else f"the route {options.path}"
    made = {"system": system.root, "generation": system.generation, "routes": dict(system.routes)}
    yield made, f"{options.queue} has {told}, generation {system.generation}"
