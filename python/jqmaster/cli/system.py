"""`system`: several namespaces, its partitions, laid over the nodes of a Redis Cluster; and which there are."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show
from jqmaster.cli.options import Client, Coded, Options, Replies, asks
from jqmaster.cli.places import Place
from jqmaster.cli.reach import redis_place
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK, Refused

if TYPE_CHECKING:
    from jqmaster.system.looking import Look
    from jqmaster.system.record import System
    from jqmaster.system.resizing import Moved

_SETTINGS_S = 30.0
_AGAIN_S = 5.0


def _place(options: Options) -> Place:
    """The Redis, and the system in it. Raises Refused."""
    command = "system" if options.verb in (None, "show") else f"system {options.verb}"
    return redis_place(options, command, of_system=True)


def _partitions(system: System) -> tuple[dict[str, Any], str]:
    names = [one.namespace for one in system.partitions]
    made = {"system": system.root, "generation": system.generation, "namespaces": names}
    return made, f"{system.root} has {show.counted(len(names), 'partition')}, generation {system.generation}"


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
    where = _place(options)
    found, behind = asyncio.run(_looked(where))
    document = found.document(behind)
    home = None if options.key is None else found.system.home(options.key.encode(errors="surrogateescape"))
    document["partitions"] = [one for one in document["partitions"] if home in (None, one["number"])]
    is_well = not any(one["problem"] or one["behind"] for one in document["partitions"])
    yield document, _table(document)
    return EXIT_OK if is_well else EXIT_FAILED


async def _looked(where: Place) -> tuple[Look, dict[int, list[str]]]:
    from jqmaster.system import looking
    from jqmaster.system.engine import SystemEngine

    engine = SystemEngine(where.url, where.namespace)
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

    where = _place(options)

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
    asyncio.run(_until_stopped(redis_place(options, "system balance")))
    yield None, ""


async def _until_stopped(where: Place) -> None:
    from jqmaster.system.balance import balance
    from jqmaster.system.engine import SystemEngine

    engine = SystemEngine(where.url, where.namespace, form=where.form)
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

    where = _place(options)
    system = asyncio.run(create(where.url, where.namespace, options.partitions, form=where.form))
    yield _partitions(system)


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

    where = _place(options)
    if (options.path is None) == (not options.none):
        raise Refused("say a path, or --none", "INVALID")
    system = asyncio.run(route(where.url, where.namespace, options.queue, options.path, form=where.form))
    told = "no route" if options.none else f"the route {options.path}"
    made = {"system": system.root, "generation": system.generation, "routes": dict(system.routes)}
    yield made, f"{options.queue} has {told}, generation {system.generation}"


# -- which partitions there are -------------------------------------------------------------------


@asks(
    """system add
add partitions to a system, while it works
They are new, and spread such that the nodes of the cluster have equally many.
All partitions have to answer. Where it breaks off, repeat it.

partitions N(1..254)  how many more
"""
)
def _add(_client: Client, options: Options) -> Replies:
    from jqmaster.system.resizing import add

    where = _place(options)
    system = asyncio.run(add(where.url, where.namespace, options.partitions, form=where.form))
    yield _partitions(system)


@asks("""system rebalance
move buckets, such that all partitions have equally many
As after `system add`: request tokens, unique keys and schedules go to those
that were added, too. Exit code 1 where something is still to be done: repeat
it then, or --wait. All partitions have to answer. Safe to repeat.

--wait  until nothing is left where it was before
""")
def _rebalance(_client: Client, options: Options) -> Coded:
    from jqmaster.system.resizing import rebalance

    where = _place(options)

    def step() -> tuple[dict[str, Any], str, bool]:
        moved = asyncio.run(rebalance(where.url, where.namespace, form=where.form))
        return _told_of(moved), _said_of(moved), moved.is_done

    return (yield from _repeated(step, options.wait))


def _repeated(step: Callable[[], tuple[dict[str, Any], str, bool]], wait: bool) -> Coded:
    """Take a step, and with `wait` others until one says that all is done. What they say is told where it differs."""
    last = ""
    while True:
        told, said, is_done = step()
        if said != last:
            yield told, said
        last = said
        if is_done or not wait:
            return EXIT_OK if is_done else EXIT_FAILED
        time.sleep(_AGAIN_S)


@asks("""system drain
take a partition out of a system
It takes nothing any more, its buckets go to others, its jobs run out. When it
has none left it is closed. Exit code 1 as long as it is not: repeat it then,
or --wait. Safe to repeat.

partition N(0..255)  its number
--discard            close it although records of jobs that ended are kept
--wait               until it is closed
""")
def _drain(_client: Client, options: Options) -> Coded:
    from jqmaster.system.record import OVER
    from jqmaster.system.resizing import drain

    where = _place(options)

    def step() -> tuple[dict[str, Any], str, bool]:
        found = asyncio.run(
            drain(where.url, where.namespace, options.partition, discard=options.discard, form=where.form)
        )
        is_over = found.state in OVER
        counts = {"unended": found.unended, "ended": found.ended, "has_mail": found.has_mail}
        told = {**_told_of(found.moved), "partition": options.partition, "state": found.state, **counts}
        said = f"partition {options.partition} is {found.state}"
        if not is_over:
            left = [
                found.unended and f"{show.counted(found.unended, 'job')} not ended",
                found.ended and f"{show.counted(found.ended, 'record')} of ended jobs",
                found.has_mail and "mail for others",
            ]
            said += "".join(f", {one}" for one in left if one) + f"\n{_said_of(found.moved)}"
        return told, said, is_over

    return (yield from _repeated(step, options.wait))


@asks("""system forget
go on without a partition that never comes back
What it had is lost: jobs, results, unique keys, schedules, its part of the
statistics. Jobs that depend on its jobs take them for failed. Its buckets go
to others. Refused where it answers.

partition N(0..255)  its number
--yes                do it; without, tell what is lost
""")
def _forget(_client: Client, options: Options) -> Replies:
    from jqmaster.system.calls import latest
    from jqmaster.system.resizing import check_goes, forget

    where = _place(options)
    number = options.partition
    if not options.yes:
        system = asyncio.run(latest(where.url, where.namespace, without=number))
        check_goes(system, number)
        buckets = f"{system.buckets.count(number)} of {len(system.buckets)} buckets"
        raise Refused(
            f"partition {number}, {system.partitions[number].namespace}, would be lost: its jobs, those that run and "
            f"wait included, their results, the unique keys, request tokens and schedules of {buckets}, its part of "
            "statistics, failures and trail. Say --yes",
            "INVALID",
        )
    say = partial(print, file=sys.stderr)
    system = asyncio.run(forget(where.url, where.namespace, number, say=say, form=where.form))
    told = {"system": system.root, "generation": system.generation, "partition": number, "state": "lost"}
    yield told, f"{system.root} goes on without partition {number}, generation {system.generation}"


def _told_of(moved: Moved) -> dict[str, Any]:
    return {
        "system": moved.system.root,
        "generation": moved.system.generation,
        "buckets": moved.buckets,
        "schedules": moved.schedules,
        "busy": [{"bucket": bucket, "jobs": count} for bucket, count in sorted(moved.busy.items())],
        "keys": moved.keys,
        "settles_s": round(moved.settles_s, 3),
        "done": moved.is_done,
    }


def _said_of(moved: Moved) -> str:
    said = f"{show.counted(moved.buckets, 'bucket')} moved, {show.counted(moved.schedules, 'schedule')} with them"
    left = []
    if moved.busy:
        jobs = show.counted(sum(moved.busy.values()), "job")
        left.append(f"{show.counted(len(moved.busy), 'bucket')} stay for now, with {jobs} of queues with routes")
    if moved.keys:
        left.append(f"{show.counted(moved.keys, 'unique key')} where they were before")
    if moved.system.former and moved.settles_s > 0:
        until = time.strftime("%H:%M:%S", time.localtime(time.time() + moved.settles_s))
        left.append(f"request tokens from before are asked for until {until}")
    return "; ".join([f"{said}, generation {moved.system.generation}", *left])
