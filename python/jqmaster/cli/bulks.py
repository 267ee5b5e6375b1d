"""`bulks`: what is done to many jobs, by masters, and how far it is."""

from __future__ import annotations

from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Client, Options, Replies, asks


@asks("""bulks
list what is done to many jobs, and how far it is; stop it
Masters carry it on. What ended within an hour is listed as well.
""")
def _list(client: Client, _options: Options) -> Replies:
    bulks, now = client.bulks(), show.now_ms()
    table = show.Table("BULK | WHAT | JOBS> | OF> | STATE | BEGUN | WHERE~1", empty="nothing is done to many jobs")
    for one in bulks:
        changed = f"{'≥' if one['resumed'] else ''}{show.count(one['changed'])}"
        total = show.count(one["total"]) if "total" in one else None
        where = values.as_json(one["where"] or {})
        table.add(one["id"], one["what"], changed, total, _state(one), show.when(one["begun_ms"], now), where)
    yield bulks, table


def _state(bulk: dict[str, Any]) -> tuple[str, str | None]:
    if bulk.get("problem"):
        return bulk["problem"], "red"
    if not bulk.get("ended_ms"):
        return "under way", "green"
    return ("stopped", "yellow") if bulk["stopped"] else ("done", None)


@asks("""bulks stop
stop what is done to many jobs; what was done stays

ids ID...
""")
def _stop(client: Client, options: Options) -> Replies:
    for bulk_id in options.ids:
        bulk = client.stop_bulk(bulk_id)
        yield bulk, f"{bulk_id} {_state(bulk)[0]}: {show.counted(bulk['changed'], 'job')}"
