"""`system add`, `rebalance`, `drain`, `forget`: which partitions a system has, while it works."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show
from jqmaster.cli.options import Client, Coded, Options, Replies, asks
from jqmaster.cli.reach import redis_place
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK, Refused

if TYPE_CHECKING:
    from jqmaster.system.resizing import Moved

_AGAIN_S = 5.0


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

    where = redis_place(options, "system add", of_system=True)
    system = asyncio.run(add(where.url, where.namespace, options.partitions, form=where.form))
    names = [one.namespace for one in system.partitions]
    made = {"system": system.root, "generation": system.generation, "namespaces": names}
    yield made, f"{system.root} has {show.counted(len(names), 'partition')}, generation {system.generation}"


@asks("""system rebalance
move buckets, such that all partitions have equally many
As after `system add`: request tokens, unique keys and schedules go to those
that were added, too. Exit code 1 where something is still to be done: repeat
it then, or --wait. All partitions have to answer. Safe to repeat.

--wait  until nothing is left where it was before
""")
def _rebalance(_client: Client, options: Options) -> Coded:
    from jqmaster.system.resizing import rebalance

    where, last = redis_place(options, "system rebalance", of_system=True), ""
    while True:
        moved = asyncio.run(rebalance(where.url, where.namespace, form=where.form))
        if (said := _said_of(moved)) != last:
            yield _told_of(moved), said
        last = said
        if moved.is_done or not options.wait:
            return EXIT_OK if moved.is_done else EXIT_FAILED
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

    where, last = redis_place(options, "system drain", of_system=True), ""
    while True:
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
        if said != last:
            yield told, said
        last = said
        if is_over or not options.wait:
            return EXIT_OK if is_over else EXIT_FAILED
        time.sleep(_AGAIN_S)


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

    where = redis_place(options, "system forget", of_system=True)
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
    system = asyncio.run(forget(where.url, where.namespace, number, say=_inform, form=where.form))
    told = {"system": system.root, "generation": system.generation, "partition": number, "state": "lost"}
    yield told, f"{system.root} goes on without partition {number}, generation {system.generation}"


def _inform(said: str) -> None:
    print(said, file=sys.stderr)


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
