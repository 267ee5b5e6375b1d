"""`workers`: who they are, what they run, and what they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from jqmaster.cli import show
from jqmaster.cli.kinds import option
from jqmaster.cli.reach import connect
from jqmaster.cli.status import Replies
from jqmaster.errors import NotFound

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client

workers = App(name="workers")
Worker = Annotated[str, option("id or name")]
_STYLES = {"ready": "green", "pulling": "green", "full": "cyan", "busy": "yellow", "quiet": "yellow"}
_STYLES |= {"unreachable": "red", "gone": "red"}


def every(client: Client) -> list[dict[str, Any]]:
    """Those that are registered, and those that pull and announce themselves."""
    return [*client.each("workers"), *client.each("workers", others=True)]


def table(found: list[dict[str, Any]]) -> show.Table:
    now, rows = show.now_ms(), []
    for worker in found:
        held, state = worker.get("held") or 0, worker["state"]
        has_slots = worker.get("url") or worker.get("pid")
        begun = [started_ms for _, started_ms in worker.get("running") or []]
        rows.append({
            **worker,
            "state": (f"{state}, asked to stop" if worker.get("request") == "stop" else state, _STYLES.get(state)),
            "jobs": f"{held}/{worker['max_jobs']}" if has_slots else held,
            "longest": show.milliseconds(max(0, now - min(begun))) if begun else "",
        })  # fmt: skip
    columns = "WORKER=id|NAME~=name|STATE=state|JOBS>=jobs|LONGEST>=longest|SEEN=seen_ms|LAPSED>=lapsed:red"
    return show.Table(
        f"{columns}|QUEUES~=queues", rows, empty="no worker is listed: jqmaster work MODULE:JQ starts one"
    )


@workers.default
def workers_() -> Replies:
    """List workers.

    Those that jobs are pushed to are registered, and those of `jqmaster work --register`. Others that pull are listed
    while they announce themselves, as `jqmaster work` does. Dead ones stay for an hour.
    """
    found = every(connect())
    yield found, table(found)


@workers.command(name="show")
def show_(worker: Worker, /) -> Replies:
    """Show a worker and its jobs."""
    client, now = connect(), show.now_ms()
    for worker_id in _named(every(client), worker):
        found = client.there("workers", worker_id)
        runs = [f"{job_id} for {show.milliseconds(max(0, now - began))}" for job_id, began in found["running"]]
        yield found, lambda found=found, runs=runs: show.facts({**found, "running": runs})


def _named(found: list[dict[str, Any]], wanted: str, what: str = "listed") -> list[str]:
    """The ids of those that are called so. Raises NotFound."""
    ids = [one["id"] for one in found if wanted in (one["id"], one["name"])]
    if not ids:
        raise NotFound(f"no worker {wanted} is {what}")
    return ids


@workers.command
def quiet(*names: Worker) -> Replies:
    """Ask workers to finish their jobs and take no more."""
    return _ask(names, "quiet", "was asked to take no more jobs")


@workers.command
def stop(*names: Worker) -> Replies:
    """Ask workers to stop, as if they got SIGTERM."""
    return _ask(names, "stop", "was asked to stop")


@workers.command
def resume(*names: Worker) -> Replies:
    """Ask quiet workers to take jobs again."""
    return _ask(names, "resume", "was asked to take jobs again")


def _ask(names: tuple[str, ...], request: str, asked: str) -> Replies:
    client = connect()
    found = list(client.each("workers"))
    for name in names:
        for worker_id in _named(found, name, "registered (jqmaster work --register does)"):
            client.call("worker", worker_id, request)
            yield {"worker": worker_id, "request": request}, f"{worker_id} {asked}"
