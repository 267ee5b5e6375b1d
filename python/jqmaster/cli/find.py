"""Finding jobs: `jobs`, `tags`."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import Any

from jqmaster.cli import show, values, where
from jqmaster.cli.options import Parser, command, positive, reach
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_OK


def add(commands: Any) -> None:
    jobs = command(commands, "jobs", _jobs, "find jobs")
    where.add(jobs)
    jobs.option("--limit", type=positive, default=20, metavar="N", help="at most so many (default: %(default)s)")
    jobs.option("--all", action="store_true", help="all of them")
    jobs.option("--newest", action="store_true", help="the newest first, within a state")
    jobs.option("--full", action="store_true", help="with --json: with argument, result and error")
    jobs.option("--ids", action="store_true", help="print the ids only, for retry - and others")
    reach(jobs)
    tags = reach(command(commands, "tags", _tags, "list tags with the number of jobs that have them"))
    tags.option("--top", type=positive, metavar="N", help="the most used, instead of all in order of name")


def _jobs(options: argparse.Namespace, _parser: Parser) -> int:
    wanted = where.read(options)
    if options.newest and "status" not in wanted and not {"tag", "group"} & wanted.keys():
        wanted["status"] = list(show.STATES)
    with open_client(options) as client:
        found = client.jobs(newest=options.newest, brief=not (options.full and options.json), **wanted)
        if options.ids:
            for job in found if options.all else islice(found, options.limit):
                print(job["id"])
            return EXIT_OK
        if options.json:
            values.print_lines(found if options.all else islice(found, options.limit))
            return EXIT_OK
        shown = list(found if options.all else islice(found, options.limit + 1))
    more = not options.all and len(shown) > options.limit
    _table(shown[: options.limit] if more else shown).print("no such jobs")
    if more:
        print(show.paint(f"… and more; --limit N or --all shows them (shown: {options.limit})", "dim"))
    return EXIT_OK


def _table(jobs: list[dict[str, Any]]) -> show.Table:
    now = show.now_ms()
    same_queue = all(job["queue"] == job["name"] for job in jobs)
    table = show.Table(
        [show.Column("ID"), show.Column("NAME", shrinks=2), show.Column("QUEUE", shrinks=2),
         show.Column("STATUS"), show.Column("PRIO", right=True), show.Column("TRY", right=True),
         show.Column("CREATED", shrinks=4, optional=True), show.Column("WHEN"),
         show.Column("LAST FAILURE", shrinks=3)]
    )  # fmt: skip
    for job in jobs:
        table.add(
            job["id"], job["name"], "" if same_queue else job["queue"], show.state(job["status"]),
            job["priority"] or "", job["attempt"] or "", show.when(job["created_ms"], now), _then(job, now),
            show.one_line(job.get("message")) or job.get("reason"),
        )  # fmt: skip
    return table


def _then(job: dict[str, Any], now: int) -> str:
    if job.get("ended_ms"):
        return f"ended {show.when(job['ended_ms'], now)}"
    if job["status"] == "running" and job.get("started_ms"):
        return f"for {show.milliseconds(max(0, now - job['started_ms']))}"
    return f"due {show.when(job['due_ms'], now)}" if job.get("due_ms") else ""


def _tags(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        found = client.tags(options.top)
    if options.json:
        values.print_lines({"tag": tag, "count": count} for tag, count in found)
        return EXIT_OK
    table = show.Table([show.Column("TAG", shrinks=1), show.Column("JOBS", right=True)])
    for tag, count in found:
        table.add(tag, show.count(count))
    table.print("no tags")
    return EXIT_OK
