"""`retry`, `discard`, `cancel`, `kick`: of jobs named, or of all that fit a filter."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show, values, where
from jqmaster.cli.options import Parser, choice, command, duration, reach
from jqmaster.cli.progress import Progress
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, Refused

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client
    from jqmaster.engine.engine import Operations


_MORE = """\
Give ids (- reads them from stdin), or a filter. With a filter the jobs that
fit are counted and you are asked; --yes does not ask, --dry-run only counts."""
_BATCH = 1000
_MOST_COUNTED = 100_000

# What a filter without --status means, and what it may take.
_STATES = {
    "retry": ("error", "cancelled", "retrying"),
    "discard": tuple(state for state in show.STATES if state != "running"),
    "cancel": ("queued", "scheduled", "blocked", "retrying", "running"),
}
_DONE = {"retry": "retried", "discard": "discarded", "cancel": "cancelled", "kick": "kicked"}
_TEXTS = {
    "retry": "have jobs that failed, were cancelled or wait for a retry run again",
    "discard": "remove jobs that do not run, with all there is of them",
    "cancel": "cancel jobs that wait or run",
}


def add(commands: Any) -> None:
    for name, text in _TEXTS.items():
        parser = command(commands, name, _change, text, _MORE)
        parser.set_defaults(what=name)
        parser.add_argument("ids", metavar="ID", nargs="*")
        where.add(parser)
        parser.option("--yes", "-y", action="store_true", help="do not ask")
        parser.option("--dry-run", action="store_true", help="only count the jobs that fit")
        if name == "cancel":
            parser.option("--force", action="store_true", help="also running jobs where the settings protect them")
            parser.option(
                "--dependents", type=choice("leave", "cancel", "refuse"), metavar="leave|cancel|refuse",
                help="jobs that wait for these (default: leave)",
            )  # fmt: skip
        reach(parser)
    kick = command(commands, "kick", _kick, "take running jobs from their workers; they wait again")
    kick.set_defaults(what="kick")
    kick.add_argument("ids", metavar="ID", nargs="*", help="or - for stdin")
    kick.option("--queue", metavar="NAME", help="all that run of this queue")
    kick.option("--delay", type=duration, metavar="TIME", help="they start again after so long")
    reach(kick)


def _change(options: argparse.Namespace, parser: Parser) -> int:
    wanted = where.read(options)
    ids = _ids(options)
    if ids and wanted:
        parser.error("give ids or a filter, not both")
    if not ids and not wanted:
        if options.ids:
            return EXIT_OK
        parser.error("give ids, or a filter such as --queue NAME")
    with open_client(options) as client:
        if ids:
            return _named(client, options, ids)
        return _filtered(client, options, wanted)


def _ids(options: argparse.Namespace) -> list[str]:
    if "-" in options.ids:
        return sys.stdin.read().split()
    return list(options.ids)


def _named(client: Client, options: argparse.Namespace, ids: list[str]) -> int:
    answers: list[str] = []
    with Progress(f"{options.what}:", len(ids)) as progress:
        for start in range(0, len(ids), _BATCH):
            part = ids[start : start + _BATCH]
            if options.what == "retry":
                answers += client.retry(part)
            elif options.what == "discard":
                answers += client.discard(part)
            elif options.what == "kick":
                answers += client.kick(part, delay=options.delay)
            else:
                answers += client.cancel(part, force=options.force, dependents=options.dependents)
            progress.add(len(part))
    return _told(options, ids, answers)


def _told(options: argparse.Namespace, ids: list[str], answers: list[str]) -> int:
    refused = {"NOTFOUND": "no such job", "CONFLICT": _conflict(options.what)}
    # What was finished is left alone, and answers with its state.
    ended = ("done", "error", "cancelled") if options.what == "cancel" else ()
    for job_id, answer in zip(ids, answers, strict=True):
        if options.json:
            values.print_json({"id": job_id, "answer": answer})
        elif answer in refused:
            print(f"jqmaster: {job_id}: {refused[answer]}", file=sys.stderr)
        elif answer in ended:
            print(f"{job_id}  had ended: {answer}")
        elif answer == "queued" or options.what in ("retry", "kick"):
            print(f"{job_id}  {_DONE[options.what]}" + ("" if answer == "queued" else f", {answer}"))
        else:
            print(f"{job_id}  {_DONE[options.what]}, was {answer}")
    if "CONFLICT" in answers:
        return EXIT_FAILED
    return EXIT_NOT_FOUND if "NOTFOUND" in answers else EXIT_OK


def _conflict(what: str) -> str:
    return {
        "retry": "neither failed, cancelled nor waiting for a retry; or its unique key is another's",
        "discard": "it runs; cancel it first",
        "cancel": "it runs, and the settings protect running jobs; --force",
        "kick": "it does not run",
    }[what]


# -- all that fit ---------------------------------------------------------------------------------


def _filtered(client: Client, options: argparse.Namespace, wanted: dict[str, Any]) -> int:
    what = options.what
    states = [state for state in wanted.get("status", _STATES[what]) if state in _STATES[what]]
    if "group" in wanted:
        states = [state for state in states if state == "error"]
    if options.dependents == "refuse" if what == "cancel" else False:
        raise Refused("--dependents refuse goes with ids, not with a filter", EXIT_USAGE, "INVALID")
    total, more = 0, False
    if options.dry_run or not options.yes:
        total, more = _preview(client, options, {**wanted, "status": states})
        if options.dry_run or not total:
            return EXIT_OK
        if not _agreed(what, total, more):
            return EXIT_FAILED
    changed = _steps(client, options, wanted | ({"status": states} if "status" in wanted else {}), total)
    if options.json:
        values.print_json({"changed": changed})
    else:
        print(f"{_DONE[what]} {show.counted(changed, 'job')}")
    return EXIT_OK


def _preview(client: Client, options: argparse.Namespace, wanted: dict[str, Any]) -> tuple[int, bool]:
    """Count what fits, and say so: (how many, whether there are more)."""
    by_state: Counter[str] = Counter()
    total = 0
    with Progress("counting") as progress:
        for job in client.jobs(brief=True, **wanted) if wanted["status"] else ():
            by_state[job["status"]] += 1
            total += 1
            progress.add(1)
            if total == _MOST_COUNTED:
                break
    more = total == _MOST_COUNTED
    if options.json:
        if options.dry_run:
            values.print_json({"jobs": total, "more": more, "by_status": dict(by_state)})
        return total, more
    parts = ", ".join(f"{show.count(by_state[state])} {state}" for state in show.STATES if by_state[state])
    fit = f"{'more than ' if more else ''}{show.counted(total, 'job fits', 'jobs fit')}"
    print(f"{fit}: {parts}" if total else "no job fits", file=sys.stdout if options.dry_run else sys.stderr)
    return total, more


def _agreed(what: str, total: int, more: bool) -> bool:
    if not sys.stdin.isatty():
        raise Refused(f"nobody can be asked: give --yes to {what} them", EXIT_USAGE, "INVALID")
    these = "all of them" if more else f"these {show.count(total)}" if total > 1 else "this one"
    print(f"{what} {these}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _steps(client: Client, options: argparse.Namespace, wanted: dict[str, Any], total: int) -> int:
    more = {"force": options.force or None} if options.what == "cancel" else {}

    def step(engine: Operations) -> Coroutine[Any, Any, tuple[str, int]]:
        steps = {"retry": engine.retry_where, "discard": engine.discard_where, "cancel": engine.cancel_where}
        found: Coroutine[Any, Any, tuple[str, int]] = steps[options.what](wanted, cursor=cursor, **more)
        return found

    cursor, changed = None, 0
    with Progress(f"{options.what}:", total or None) as progress:
        while cursor != "":
            cursor, number = client.ask(step)
            changed += number
            progress.add(number)
    return changed


def _kick(options: argparse.Namespace, parser: Parser) -> int:
    ids = _ids(options)
    if bool(ids) == (options.queue is not None):
        parser.error("give ids, or --queue NAME")
    with open_client(options) as client:
        if ids:
            return _named(client, options, ids)
        kicked = client.kick_queue(options.queue, delay=options.delay)
    if options.json:
        values.print_json({"changed": kicked})
    else:
        print(f"kicked {show.counted(kicked, 'job')}")
    return EXIT_OK
