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
from jqmaster.wire.fields import FIELDS, Field

if TYPE_CHECKING:
    from jqmaster.client.asks import Enqueued

_MORE = """\
ARGUMENT is JSON: '{"to": "ann@example.org"}', '[40, 2]', '"text"', 4711.
@FILE reads it from a file, - from stdin; without it the job has none (nil).
Prints the job's id; with --wait the result, and the exit code is 1 if the
job failed."""
_BATCH = 1000


def _kind(field: Field) -> dict[str, Any]:
    """How argparse takes a field."""
    if field.kind == "boolean":
        return {"action": "store_true"}
    if field.kind in ("names", "jobs"):
        return {"action": Several, "metavar": field.metavar}
    if field.kind == "choice":
        words = [word.name for word in field.words]
        return {"type": choice(*words), "metavar": "|".join(words)}
    types: dict[str, tuple[Any, str]] = {
        "name": (str, "TEXT"),
        "integer": (whole(int(field.least), int(field.most)), "N"),
        "number": (fraction, "PART"),
        "seconds": (span if field.least else duration, "TIME"),
        "moment": (moment, "MOMENT"),
    }
    kind, metavar = types[field.kind]
    return {"type": kind, "metavar": field.metavar or metavar}


def _word(field: Field) -> str:
    """Where argparse puts it."""
    return field.option[2:].replace("-", "_")


def _help(field: Field) -> str:
    text = field.meaning.replace("`", "")
    if field.kind in ("names", "jobs"):
        text += "; may be given several times"
    elif field.name == "delay":
        text += ": 90, 5m, 2h"
    elif field.kind == "moment":
        text += ": 2030-01-31T18:00 (local), …Z (UTC) or Unix seconds"
    usual = "" if field.kind in ("boolean", "choice") else field.usual.replace("`", "")
    return text + (f" (default: {usual})" if usual else "")


def add(commands: Any) -> None:
    parser = command(commands, "enqueue", _enqueue, "enqueue a job", _MORE)
    parser.add_argument("name", metavar="NAME", help="kind of job")
    parser.add_argument("argument", metavar="ARGUMENT", nargs="?", help="JSON, @FILE or - (default: nil)")
    for field in FIELDS:
        if field.option:
            parser.option(field.option, help=_help(field), **_kind(field))
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
    given = {field.name: getattr(options, _word(field)) for field in FIELDS if field.option}
    # 0 and "" are values; a flag that is not given, and no tags, are none.
    said = {name: value for name, value in given.items() if value not in (None, []) and value is not False}
    return {"name": options.name} | said


def _send(client: Any, jobs: list[tuple[dict[str, Any], bytes]], request: str | None) -> list[Enqueued]:
    from jqmaster.client import asks
    from jqmaster.errors import JQError
    from jqmaster.wire import packform

    # The arguments go as they were packed: binary data and the like would not survive being unpacked.
    bodies = [packform.extend_map(packform.pack(spec), {"argument": argument}) for spec, argument in jobs]
    body = {"jobs": packform.raw_array(bodies)}
    if request is not None:
        body["request"] = packform.pack(request)
    ask = asks.enqueue_many([], None)
    try:
        enqueued: list[Enqueued] = client.do(asks.Ask(ask.method, ask.path, ask.read, packform.raw_map(body)))
        return enqueued
    except JQError as error:
        if len(jobs) == 1:
            error.message = error.message.removeprefix("jobs[0].")
        raise
