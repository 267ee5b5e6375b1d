"""`enqueue`: one job, or one for each line."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show, values
from jqmaster.cli.jobs import await_end, outcome
from jqmaster.cli.options import Client, Options, Replies, asks
from jqmaster.cli.progress import Progress
from jqmaster.cli.status import Refused
from jqmaster.errors import JQError
from jqmaster.manifest.fields import FIELDS, Field

if TYPE_CHECKING:
    from jqmaster.engine.replies import Enqueued

_BATCH = 1000
_KINDS = {"boolean": "", "name": "TEXT", "number": "PART", "moment": "MOMENT"}
_MORE = {"delay": ": 90, 5m, 2h", "run_at": ": 2030-01-31T18:00 (local), …Z (UTC) or Unix seconds"}


def option_of(field: Field) -> str:
    """The line that declares the option of a job's field."""
    text = field.meaning.replace("`", "") + _MORE.get(field.name, "")
    usual = "" if field.kind in ("boolean", "choice") else field.usual.replace("`", "")
    if field.kind == "choice":
        kind = "|".join(word.name for word in field.words)
    elif field.kind in ("names", "jobs"):
        kind = f"{field.metavar}..."
        text += "; may be given several times"
    elif field.kind == "seconds":
        kind = "SPAN" if field.least else "TIME"
    elif field.kind == "integer":
        kind = f"N({field.least:.0f}..{field.most:.0f})"
    else:
        kind = field.metavar or _KINDS[field.kind]
    return f"{field.option} {kind}  {text}" + (f" (default: {usual})" if usual else "")


def told_of(options: Options, fields: Iterable[Field]) -> dict[str, Any]:
    """Those of a job's fields that the options give."""
    given = {field.name: getattr(options, field.option[2:].replace("-", "_")) for field in fields if field.option}
    # 0 and "" are values; a flag that is not given, and no tags, are none.
    return {name: value for name, value in given.items() if value not in (None, []) and value is not False}


_FIELDS = "\n".join(option_of(field) for field in FIELDS if field.option)


@asks(
    f"""enqueue
enqueue a job
ARGUMENT is JSON: '{{"to": "ann@example.org"}}', '[40, 2]', '"text"', 4711.
@FILE reads it from a file, - from stdin; without it the job has none (nil).
Prints the job's id; with --wait the result, and the exit code is 1 if the
job failed.

name NAME            kind of job
argument ARGUMENT?   JSON, @FILE or - (default: nil)
{_FIELDS}
--request TOKEN      repeating the command with the same token enqueues nothing twice
--lines              each line of ARGUMENT is the argument of a job
--wait               wait for its end, and print its result
--wait-timeout SPAN  but no longer; then exit with 5
""",
    creates=True,
)
def _enqueue(client: Client, options: Options) -> Replies:
    spec = {"name": options.name} | told_of(options, FIELDS)
    if options.lines:
        for name in ("wait", "request"):
            if getattr(options, name):
                raise Refused(f"--{name} is for one job, not for --lines", "INVALID")
        yield from _enqueue_lines(client, options, spec)
        return
    argument = values.argument(options.argument)
    if options.wait:
        spec["keep_result"] = True
    [enqueued] = _send(client, [(spec, argument)], options.request)
    if options.wait:
        if show.is_terminal(sys.stderr):
            print(f"job {enqueued.id} …", file=sys.stderr)
        await_end(client, enqueued.id, options.wait_timeout)
        value = outcome(client, enqueued.id)
        yield [value], partial(print, values.as_json(value))
        return
    yield {"id": enqueued.id, "created": enqueued.created}, enqueued.id
    if not enqueued.created and not options.json:
        print("(it was there already: its unique key is taken)", file=sys.stderr)


def _enqueue_lines(client: Client, options: Options, spec: dict[str, Any]) -> Replies:
    lines = [line for line in values.source(options.argument or "-").splitlines() if line.strip()]
    # All are read before the first goes out: a slip in the last line must not leave half of them behind.
    jobs = [(spec, values.packed(line, f"line {number}")) for number, line in enumerate(lines, 1)]
    created = 0
    with Progress("enqueueing", len(jobs)) as progress:
        for start in range(0, len(jobs), _BATCH):
            added = _send(client, jobs[start : start + _BATCH], None)
            created += sum(one.created for one in added)
            progress.add(len(added))
            if options.json:
                yield [{"id": one.id, "created": one.created} for one in added], ""
    if not options.json:
        there = len(jobs) - created
        were = f", {show.count(there)} were there" if there else ""
        yield None, f"enqueued {show.counted(created, 'job')}{were}"


def _send(client: Client, jobs: list[tuple[dict[str, Any], bytes]], request: str | None) -> list[Enqueued]:
    try:
        # The arguments go as they were packed: binary data and the like would not survive being unpacked.
        return client.ask(lambda it: it.enqueue(jobs, request=request))
    except JQError as error:
        if len(jobs) == 1:
            error.message = error.message.removeprefix("jobs[0].")
        raise
