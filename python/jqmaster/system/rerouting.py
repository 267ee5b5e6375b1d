"""Changing the route of a queue (module ``routes``)."""

from __future__ import annotations

from jqmaster.engine import scripts
from jqmaster.engine.engine import Engine
from jqmaster.errors import Conflict
from jqmaster.system import calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import System
from jqmaster.system.routes import is_placed, segments_of

_OPEN = ("queued", "scheduled", "blocked", "retrying", "running")
_PAGE = 1000


async def route(url: str, root: str, queue: str, path: str | None, *, form: scripts.Form = "auto") -> System:
    """Give a queue a route, or with None take it away; the record. Safe to repeat.

    Jobs stay where they are, so the queue has to be without any that have not ended. Raises Invalid (path, queue),
    Conflict (it has jobs, a constraint needs the route that it has, or somebody changes the system at the same moment),
    NotFound, Version, Unavailable (a partition does not answer: all are needed), ValueError.
    """
    if path is not None:
        segments_of(path)
    engine = SystemEngine(url, root, form=form)
    try:
        partitions = await engine.partitions()
        system = engine.record
        assert system is not None
        if system.routes.get(queue) != path:
            await _check_empty(engine, queue)
            routed = system.routed(queue, path)
            await _check_constraints(partitions[0], system, routed)
            first = partitions[0]
            await calls.put(first.redis, first.namespace, routed, after=system.generation, form=form)
            system = routed
    finally:
        await engine.close()
    await calls.tell(url, system, form=form)  # also to those that did not hear of it last time
    return system


async def _check_empty(engine: SystemEngine, queue: str) -> None:
    for one in (await engine.queues([queue])).documents:
        if count := sum(one[state] for state in _OPEN):
            raise Conflict(f"{queue} has {count} jobs that have not ended, and they stay where they are", "queue")


async def _check_constraints(first: Engine, before: System, after: System) -> None:
    cursor = ""
    while True:
        page = await first.constraints(cursor=cursor, count=_PAGE)
        for one in page.documents:
            if is_placed(one, before.routes) and not is_placed(one, after.routes):
                raise Conflict(f"constraint {one['id']} needs the route that {_lost(before, after)} has", "path")
        cursor = page.cursor
        if not cursor:
            return


def _lost(before: System, after: System) -> str:
    return next(queue for queue, path in before.routes.items() if after.routes.get(queue) != path)
