"""`workers`: those that are registered, and what they are asked."""

from __future__ import annotations

from typing import Any

from jqmaster.cli import show
from jqmaster.cli.options import Client, Options, Replies, asks
from jqmaster.cli.status import Refused

_PULL = "workers that pull are registered with `jqmaster work --register`"
_STATES = {"ready": "green", "pulling": "green", "full": "cyan", "busy": "yellow", "quiet": "yellow"}
_STATES |= {"unreachable": "red"}


@asks("""workers
list registered workers; ask them to be quiet or stop
Workers that jobs are pushed to are registered. Those that pull are with
`jqmaster work --register`; else they are not listed and cannot be asked.
""")
def _list(client: Client, _options: Options) -> Replies:
    workers = client.workers()
    shown = table(workers, show.now_ms())
    if not workers:
        running = sum(queue["running"] for queue in client.queues())
        others = f"; {show.counted(running, 'job runs', 'jobs run')} on others" if running else ""
        shown.empty = f"no worker is registered{others} ({_PULL})"
    yield workers, shown


def table(workers: list[dict[str, Any]], now: int) -> show.Table:
    """The workers, as people see them; also in `top`."""
    made = show.Table("WORKER | NAME~2 | STATE | JOBS> | LONGEST> | SEEN | LAPSED>:red | QUEUES~3?")
    for worker in workers:
        held = worker.get("held") or 0
        room = f"{held}/{worker['max_jobs']}" if worker.get("url") else show.some(held)
        begun = [started for _, started in worker.get("running") or []]
        longest = show.milliseconds(max(0, now - min(begun))) if begun else ""
        queues = worker["queues"] if isinstance(worker["queues"], str) else ", ".join(worker["queues"])
        state = worker["state"]
        shown = f"{state}, asked to stop" if worker.get("request") == "stop" else state
        seen, lapsed = show.when(worker["seen_ms"], now), show.some(worker.get("lapsed") or 0)
        made.add(worker["id"], worker["name"], (shown, _STATES.get(state)), room, longest, seen, lapsed, queues)
    return made


_ASKED = {"quiet": "is to take no more jobs", "stop": "is to stop", "resume": "takes jobs again"}


@asks("""workers quiet
ask workers to finish what they have and take no more

workers WORKER...  an id, or the name of one
""")
@asks("""workers stop
ask workers to stop, as if they got SIGTERM

workers WORKER...  an id, or the name of one
""")
@asks("""workers resume
have quiet workers take jobs again

workers WORKER...  an id, or the name of one
""")
def _ask(client: Client, options: Options) -> Replies:
    workers, request = client.workers(), options.verb
    for wanted in options.workers:
        ids = [one["id"] for one in workers if wanted in (one["id"], one["name"])]
        if not ids:
            raise Refused(f"no such worker is registered: {wanted} ({_PULL})", "NOTFOUND")
        for worker_id in ids:
            client.tell_worker(worker_id, request)
            yield {"worker": worker_id, "request": request}, f"{worker_id} {_ASKED[request]}"
