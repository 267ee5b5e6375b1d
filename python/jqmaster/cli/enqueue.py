"""`enqueue`: one job, or one for each line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show, values
from jqmaster.cli.options import (
    Parser,
    Several,
    choice,
    command,
    duration,
    fraction,
    moment,
    reach,
    span,
    whole,
)
from jqmaster.cli.progress import Progress
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_OK, EXIT_USAGE, Refused

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client
    from jqmaster.engine.replies import Enqueued

_MORE = """\
ARGUMENT is JSON: '{"to": "ann@example.org"}', '[40, 2]', '"text"', 4711.
@FILE reads it from a file, - from stdin; without it the job has none (nil).
Prints the job's id; with --wait the result, and the exit code is 1 if the
job failed."""
_BATCH = 1000

# name on the command line: (kind, what it means)
_OPTIONS: tuple[tuple[str, Any, str, str], ...] = (
    ("--queue", str, "NAME", "where it waits (default: NAME)"),
    ("--priority", whole(-(2**31), 2**31 - 1), "N", "smaller runs first (default: 0)"),
    ("--delay", duration, "TIME", "not before so long from now: 90, 5m, 2h"),
    ("--run-at", moment, "MOMENT", "not before 2030-01-31T18:00 (local), …Z (UTC) or Unix seconds"),
    ("--expires-in", span, "TIME", "if not started by then it ends as an error"),
    ("--timeout", span, "TIME", "length of the lease (default: 30 s)"),
    ("--max-runtime", span, "TIME", "the most an attempt may take"),
    ("--max-retry", whole(0, 2**31 - 1), "N", "retries after the first failure (default: 10)"),
    ("--retry-base", duration, "TIME", "the first retry comes after so long, each next after twice that"),
    ("--retry-cap", duration, "TIME", "but no later than after so long"),
    ("--retry-jitter", fraction, "PART", "up to this part of it (0 to 1) is taken off at random"),
    ("--unique", str, "KEY", "none is made while a job with this key has not ended"),
    ("--unique-for", span, "TIME", "the key is kept for so long after the end"),
    ("--if-exists", choice("keep", "replace", "latest"), "keep|replace|latest",
     "what becomes of the second with the same key"),
    ("--if-failed", choice("wait", "fail", "run"), "wait|fail|run",
     "what becomes of it when a job it depends on fails"),
)  # fmt: skip


def add(commands: Any) -> None:
    parser = command(commands, "enqueue", _enqueue, "enqueue a job", _MORE)
    parser.add_argument("name", metavar="NAME", help="kind of job")
    parser.add_argument("argument", metavar="ARGUMENT", nargs="?", help="JSON, @FILE or - (default: nil)")
    for flag, kind, metavar, text in _OPTIONS:
        parser.option(flag, type=kind, metavar=metavar, help=text)
    parser.option("--tag", action=Several, metavar="TAG", help="to find it by; may be given several times")
    parser.option("--depends", action=Several, metavar="ID", help="runs when this job is done; likewise")
    parser.option("--keep-result", action="store_true", help="keep what the function returns")
    parser.option("--track", action="store_true", help="publish each of its transitions")
    parser.option("--request", metavar="TOKEN", help="repeating the command with the same token enqueues nothing twice")
    parser.option("--lines", action="store_true", help="each line of ARGUMENT is the argument of a job")
    parser.option("--wait", action="store_true", help="wait for its end, and print its result")
    parser.option("--wait-timeout", type=span, metavar="TIME", help="but no longer; then exit with 5")
    reach(parser)


def _enqueue(options: argparse.Namespace, _parser: Parser) -> int:
    from jqmaster.cli.jobs import await_end

    if options.lines and options.wait:
        raise Refused("--wait is for one job, not for --lines", EXIT_USAGE, "INVALID")
    if options.lines:
        return _enqueue_lines(options)
    argument = values.NIL if options.argument is None else values.packed(values.source(options.argument))
    spec = _spec(options)
    if options.wait:
        spec["keep_result"] = True
    with open_client(options, creates=True) as client:
        [enqueued] = _send(client, [(spec, argument)], options.request)
        if options.wait:
            if show.is_terminal(sys.stderr):
                print(f"job {enqueued.id} …", file=sys.stderr)
            return await_end(client, enqueued.id, options.wait_timeout, options)
    if options.json:
        values.print_json({"id": enqueued.id, "created": enqueued.created})
    elif enqueued.created:
        print(enqueued.id)
    else:
        print(enqueued.id)
        print("(it was there already: its unique key is taken)", file=sys.stderr)
    return EXIT_OK


def _enqueue_lines(options: argparse.Namespace) -> int:
    spec = _spec(options)
    if options.request is not None:
        raise Refused("--request is for one job, not for --lines", EXIT_USAGE, "INVALID")
    lines = [line for line in values.source(options.argument or "-").splitlines() if line.strip()]
    # All are read before the first goes out: a slip in the last line must not leave half of them behind.
    jobs = [(spec, values.packed(line, f"line {number}")) for number, line in enumerate(lines, 1)]
    created = 0
    with open_client(options, creates=True) as client, Progress("enqueueing", len(jobs)) as progress:
        for batch in _batches(jobs):
            added = _send(client, batch, None)
            created += sum(one.created for one in added)
            progress.add(len(batch))
            if options.json:
                values.print_lines([{"id": one.id, "created": one.created} for one in added])
    if not options.json:
        there = len(jobs) - created
        print(f"enqueued {show.counted(created, 'job')}" + (f", {show.count(there)} were there" if there else ""))
    return EXIT_OK


def _batches(jobs: list[tuple[dict[str, Any], bytes]]) -> Iterator[list[tuple[dict[str, Any], bytes]]]:
    for start in range(0, len(jobs), _BATCH):
        yield jobs[start : start + _BATCH]


def _spec(options: argparse.Namespace) -> dict[str, Any]:
    spec: dict[str, Any] = {"name": options.name}
    for flag, *_ in _OPTIONS:
        name = flag[2:].replace("-", "_")
        if getattr(options, name) is not None:
            spec[name] = getattr(options, name)
    for name, given in (("tags", options.tag), ("depends", options.depends)):
        if given:
            spec[name] = given
    for name in ("keep_result", "track"):
        if getattr(options, name):
            spec[name] = True
    return spec


def _send(client: Client, jobs: list[tuple[dict[str, Any], bytes]], request: str | None) -> list[Enqueued]:
    from jqmaster.errors import JQError

    try:
        # The arguments go as they were packed: binary data and the like would not survive being unpacked.
        return client.ask(lambda it: it.enqueue(jobs, request=request))
    except JQError as error:
        if len(jobs) == 1:
            error.message = error.message.removeprefix("jobs[0].")
        raise
