"""`enqueue`: one job, or one for each line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from jqmaster.cli import show, values
from jqmaster.cli.declared import taking
from jqmaster.cli.jobs import await_end, outcome
from jqmaster.cli.kinds import Span, option
from jqmaster.cli.reach import as_json, connect
from jqmaster.cli.status import Refused, Replies
from jqmaster.errors import JQError
from jqmaster.manifest.contract import Argument
from jqmaster.manifest.fields import FIELDS, Field

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client
    from jqmaster.engine.replies import Enqueued

_BATCH = 1000
_TYPES = {"set<name>": "list<name>", "set<reference>": "list<job>"}
_MORE = {"delay": ": 90, 5m, 2h", "run_at": ": 2030-01-31T18:00 (local), …Z (UTC) or Unix seconds"}
_GIVEN = [field for field in FIELDS if field.name not in ("name", "headers")]


def _argument(field: Field) -> Argument:
    """A field of a job, as the command line takes it: the engine checks ranges but of whole numbers."""
    text = field.meaning.replace("`", "") + _MORE.get(field.name, "")
    bounds = {"least": field.least, "most": field.most} if field.type == "integer" else {}
    usual = "" if field.type == "flag" or field.words else field.usual.replace("`", "")
    type_ = _TYPES.get(field.type, field.type)
    return Argument(name=field.name, type=type_, optional=True, default=usual or None, meaning=text, **bounds)


@taking(map(_argument, _GIVEN), {"timeout": "--lease", "tags": "--tag"})
def enqueue(
    name: Annotated[str, option("kind of job")],
    argument: Annotated[str | None, option("JSON, @FILE, or - for stdin; default: nil")] = None,
    /,
    *,
    request: Annotated[str | None, option("a token: repeating the command with it enqueues nothing twice")] = None,
    lines: Annotated[bool, option("each line of ARGUMENT is the argument of a job")] = False,
    wait: Annotated[bool, option("wait for the job and print its result; exit code 1 if it failed")] = False,
    wait_timeout: Annotated[Span | None, option("give up after this time, with exit code 5")] = None,
    **fields: Any,
) -> Replies:
    """Enqueue a job, and print its id.

    ARGUMENT is JSON: '{"to": "ann@example.org"}', '[40, 2]', '"text"', 4711.
    """
    client = connect(creates=True)
    spec = {"name": name} | fields
    if lines:
        if wait or request:
            raise Refused(f"--{'wait' if wait else 'request'} is for one job, not for --lines", "INVALID")
        yield from _enqueue_lines(client, argument, spec)
        return
    packed = values.argument(argument)
    if wait:
        spec["keep_result"] = True
    [enqueued] = _send(client, [(spec, packed)], request)
    if wait:
        if sys.stderr.isatty():
            print(f"job {enqueued.id} …", file=sys.stderr)
        await_end(client, enqueued.id, wait_timeout)
        value = outcome(client, enqueued.id)
        yield [value], lambda: print(values.as_json(value))
        return
    yield enqueued._asdict(), enqueued.id
    if not enqueued.created and not as_json():
        print("(duplicate: a job with this unique key exists)", file=sys.stderr)


def _enqueue_lines(client: Client, argument: str | None, spec: dict[str, Any]) -> Replies:
    lines = [line for line in values.source(argument or values.STDIN).splitlines() if line.strip()]
    # All are read before the first goes out: a slip in the last line must not leave half of them behind.
    jobs = [(spec, values.packed(line, f"line {number}")) for number, line in enumerate(lines, 1)]
    created = 0
    for start in range(0, len(jobs), _BATCH):
        added = _send(client, jobs[start : start + _BATCH], None)
        created += sum(job.created for job in added)
        if as_json():
            yield [job._asdict() for job in added], ""
    if not as_json():
        duplicates = len(jobs) - created
        were = f"; {show.counted(duplicates, 'was a duplicate', 'were duplicates')}" if duplicates else ""
        yield None, f"enqueued {show.counted(created, 'job')}{were}"


def _send(client: Client, jobs: list[tuple[dict[str, Any], bytes]], request: str | None) -> list[Enqueued]:
    try:
        # The arguments go as they were packed: binary data and the like would not survive being unpacked.
        return client.ask(lambda it: it.enqueue(jobs, request=request))
    except JQError as error:
        if len(jobs) == 1:
            error.message = error.message.removeprefix("jobs[0].")
        raise
