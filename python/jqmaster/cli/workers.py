"""`workers`: those that are registered, and what they are asked."""

from __future__ import annotations

import argparse
from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Parser, command, reach, verbs
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_NOT_FOUND, EXIT_OK, Refused

_MORE = """\
Workers that jobs are pushed to are registered. Those that pull are with
`jqmaster work --register`; else they are not listed and cannot be asked."""
_PULL = "workers that pull are registered with `jqmaster work --register`"
_STATES = {"ready": "green", "pulling": "green", "full": "cyan", "busy": "yellow", "quiet": "yellow",
           "unreachable": "red"}  # fmt: skip


def add(commands: Any) -> None:
    parser = reach(command(commands, "workers", _list, "list registered workers; ask them to be quiet or stop", _MORE))
    under = verbs(parser)
    for name, text in (
        ("quiet", "ask workers to finish what they have and take no more"),
        ("stop", "ask workers to stop, as if they got SIGTERM"),
        ("resume", "have quiet workers take jobs again"),
    ):
        verb = reach(command(under, name, _ask, text), nested=True)
        verb.set_defaults(request=name)
        verb.add_argument("workers", metavar="WORKER", nargs="+", help="an id, or the name of one")


def _list(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        workers = client.workers()
        running = 0 if workers or options.json else sum(queue["running"] for queue in client.queues())
    if options.json:
        values.print_lines(workers)
        return EXIT_OK
    others = f"; {show.counted(running, 'job runs', 'jobs run')} on others" if running else ""
    table(workers, show.now_ms()).print(f"no worker is registered{others} ({_PULL})")
    return EXIT_OK


def table(workers: list[dict[str, Any]], now: int) -> show.Table:
    """The workers, as people see them; also in `top`."""
    made = show.Table(
        [show.Column("WORKER"), show.Column("NAME", shrinks=2), show.Column("STATE"),
         show.Column("JOBS", right=True), show.Column("LONGEST", right=True), show.Column("SEEN"),
         show.Column("LAPSED", right=True, colour="red"), show.Column("QUEUES", shrinks=3, optional=True)]
    )  # fmt: skip
    for worker in workers:
        held = worker.get("held") or 0
        room = f"{held}/{worker['max_jobs']}" if worker.get("url") else show.some(held)
        begun = [started for _, started in worker.get("running") or []]
        longest = show.milliseconds(max(0, now - min(begun))) if begun else ""
        queues = worker["queues"] if isinstance(worker["queues"], str) else ", ".join(worker["queues"])
        state = worker["state"]
        asked = worker.get("request")
        shown = f"{state}, asked to {asked}" if asked == "stop" else state
        made.add(
            worker["id"], worker["name"], (shown, _STATES.get(state)), room, longest,
            show.when(worker["seen_ms"], now), show.some(worker.get("lapsed") or 0), queues,
        )  # fmt: skip
    return made


def _ask(options: argparse.Namespace, _parser: Parser) -> int:
    asked = {"quiet": "is to take no more jobs", "stop": "is to stop", "resume": "takes jobs again"}
    with open_client(options) as client:
        workers = client.workers()
        for wanted in options.workers:
            ids = [one["id"] for one in workers if wanted in (one["id"], one["name"])]
            if not ids:
                raise Refused(f"no such worker is registered: {wanted} ({_PULL})", EXIT_NOT_FOUND, "NOTFOUND")
            for worker_id in ids:
                client.tell_worker(worker_id, options.request)
                if options.json:
                    values.print_json({"worker": worker_id, "request": options.request})
                else:
                    print(f"{worker_id} {asked[options.request]}")
    return EXIT_OK
