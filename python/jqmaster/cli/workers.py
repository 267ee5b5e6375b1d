"""`workers`: who they are, what they run, and what they are asked."""

from __future__ import annotations

from functools import partial
from typing import Any

from jqmaster.cli import show
from jqmaster.cli.options import Client, Options, Replies, asks
from jqmaster.cli.status import Refused

_PULL = "workers that pull are registered with `jqmaster work --register`"
_STATES = {"ready": "green", "pulling": "green", "full": "cyan", "busy": "yellow", "quiet": "yellow"}
_STATES |= {"unreachable": "red", "gone": "red"}


@asks("""workers
list workers; ask them to be quiet or stop; take their jobs
Workers that jobs are pushed to are registered. Those that pull are with
`jqmaster work --register`; else they cannot be asked, and are listed if they
announce themselves, as `jqmaster work` does. Dead ones stay for an hour.
""")
def _list(client: Client, _options: Options) -> Replies:
    workers = client.workers() + client.workers(others=True)
    shown = table(workers, show.now_ms())
    if not workers:
        running = sum(queue["running"] for queue in client.queues())
        others = f"; {show.counted(running, 'job runs', 'jobs run')} on others" if running else ""
        shown.empty = f"no worker is listed{others} (start one: jqmaster work MODULE:JQ)"
    yield workers, shown


@asks("""workers show
show what a worker is, runs and has lost

worker WORKER  an id, or the name of one
""")
def _show(client: Client, options: Options) -> Replies:
    for worker_id in _listed(client, options.worker):
        [one] = client.workers([worker_id])
        yield one, partial(_facts, one)


def _named(workers: list[dict[str, Any]], wanted: str, problem: str) -> list[str]:
    """The ids of those that are called so. Raises Refused where there is none."""
    ids = [one["id"] for one in workers if wanted in (one["id"], one["name"])]
    if not ids:
        raise Refused(problem, "NOTFOUND")
    return ids


def _listed(client: Client, wanted: str) -> list[str]:
    workers = client.workers() + client.workers(others=True)
    return _named(workers, wanted, f"no such worker is listed: {wanted}")


def _facts(worker: dict[str, Any]) -> None:
    now = show.now_ms()
    show.facts(
        {
            "worker": worker["id"],
            "name": worker["name"],
            "state": (worker["state"], _STATES.get(worker["state"])),
            "host": worker.get("host"),
            "process": worker.get("pid"),
            "version": worker.get("version"),
            "queues": ", ".join(worker["queues"]),
            "knows": ", ".join(worker.get("knows") or []),
            "slots": f"{worker['held']} of {worker['max_jobs']}",
            "here since": show.both(worker["since_ms"], now),
            "sign of life": show.both(worker["seen_ms"], now),
            "lapsed": worker["lapsed"] or None,
            "lost": ", ".join(worker.get("lost") or []) or None,
        }
    )
    if worker["running"]:
        runs = show.Table("RUNS | FOR>")
        for job_id, started_ms in worker["running"]:
            runs.add(job_id, show.milliseconds(max(0, now - started_ms)))
        print()
        runs.print()


def table(workers: list[dict[str, Any]], now: int) -> show.Table:
    """The workers, as people see them; also in `top`."""
    made = show.Table("WORKER | NAME~2 | STATE | JOBS> | LONGEST> | SEEN | LAPSED>:red | QUEUES~3?")
    for worker in workers:
        held = worker.get("held") or 0
        has_slots = worker.get("url") or worker.get("pid")
        room = f"{held}/{worker['max_jobs']}" if has_slots else show.some(held)
        begun = [started for _, started in worker.get("running") or []]
        longest = show.milliseconds(max(0, now - min(begun))) if begun else ""
        queues = worker["queues"] if isinstance(worker["queues"], str) else ", ".join(worker["queues"])
        state = worker["state"]
        shown = f"{state}, asked to stop" if worker.get("request") == "stop" else state
        seen, lapsed = show.when(worker["seen_ms"], now), show.some(worker.get("lapsed") or 0)
        made.add(worker["id"], worker["name"], (shown, _STATES.get(state)), room, longest, seen, lapsed, queues)
    return made


_ASKED = {
    "quiet": "was asked to take no more jobs",
    "stop": "was asked to stop",
    "resume": "was asked to take jobs again",
}


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
        for worker_id in _named(workers, wanted, f"no such worker is registered: {wanted} ({_PULL})"):
            client.tell_worker(worker_id, request)
            yield {"worker": worker_id, "request": request}, f"{worker_id} {_ASKED[request]}"


@asks("""workers kick
take all their jobs from workers; they wait again
Of a worker that is not registered, the jobs that it last said it runs.

workers WORKER...  an id, or the name of one
--delay TIME       they start again after so long
""")
def _kick(client: Client, options: Options) -> Replies:
    for wanted in options.workers:
        for worker_id in _listed(client, wanted):
            kicked = client.kick_worker(worker_id, delay=options.delay)
            yield {"worker": worker_id, "changed": kicked}, f"took {show.counted(kicked, 'job')} from {worker_id}"
