"""Finding jobs, and looking at one: `jobs`, `job`, `result`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from jqmaster.cli import show, values
from jqmaster.cli.declared import Where
from jqmaster.cli.kinds import Count, Duration, Span, State, option
from jqmaster.cli.reach import Yes, as_json, connect
from jqmaster.cli.status import Refused, Replies

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client


@Parameter(name="*")
@dataclass
class Filter:
    queue: Annotated[str | None, option("in this queue")] = None
    status: Annotated[list[State] | None, option("in this state; may be given several times")] = None
    name: Annotated[str | None, option("of this name")] = None
    tag: Annotated[str | None, option("with this tag")] = None
    group: Annotated[str | None, option("failed for good with this group (see failures)")] = None
    worker: Annotated[str | None, option("that this worker runs or ran last")] = None
    where: Annotated[Where | None, option('{"match": {"argument.customer.id": "acme"}}: docs/finding.md')] = None
    older: Annotated[Duration | None, option("created longer ago than this: 90, 5m, 2h, 1d")] = None
    newer: Annotated[Duration | None, option("created more recently than this")] = None

    def wanted(self) -> dict[str, Any]:
        """The filter, as `where` takes it; empty when nothing was given."""
        now, given = show.now_ms(), vars(self)
        names = ("queue", "status", "name", "tag", "group", "worker")
        wanted = {**given["where"]} if given["where"] else {}
        wanted |= {name: given[name] for name in names if given[name]}
        if self.older is not None:
            wanted["to_ms"] = now - round(self.older * 1000)
        if self.newer is not None:
            wanted["from_ms"] = now - round(self.newer * 1000)
        return wanted


@Parameter(name="*")
@dataclass
class Chosen(Filter):
    limit: Annotated[Count | None, option("at most this many of the matching jobs")] = None
    dry_run: Annotated[bool, option("only count the matching jobs")] = False
    yes: Yes = False


def jobs(
    *,
    limit: Annotated[Count | None, option("at most this many (default: 20; all with --ids)")] = None,
    all_: Annotated[bool, option("all of them", name="--all")] = False,
    newest: Annotated[bool, option("the newest first, within a state")] = False,
    ids: Annotated[bool, option("print all ids: … | jqmaster retry -")] = False,
    which: Filter | None = None,
) -> Replies:
    """Find jobs."""
    client = connect()
    wanted = (which or Filter()).wanted()
    if newest and "status" not in wanted and not {"tag", "group"} & wanted.keys():
        wanted["status"] = list(show.STATES)
    found = client.jobs(newest=newest, brief=ids or not as_json(), **wanted)
    most = None if all_ else limit or (None if ids else 20)
    if ids:
        for job in islice(found, most):
            print(job["id"])
        if most is not None and next(found, None) is not None:
            print(f"jqmaster: stopped after {most}; there are more (--all)", file=sys.stderr)
        return
    if as_json():
        yield islice(found, most), ""
        return
    table = _table(list(islice(found, most)))
    if next(found, None) is not None:
        table.more = f"… and more; --limit N or --all shows them (shown: {most})"
    yield None, table


def _table(documents: list[dict[str, Any]]) -> show.Table:
    now = show.now_ms()
    rows = [{**job, "then": _then(job, now), "why": job.get("message") or job.get("reason")} for job in documents]
    if all(job["queue"] == job["name"] for job in rows):
        rows = [{**job, "queue": None} for job in rows]
    columns = "ID=id|NAME~=name|QUEUE~=queue|STATUS=status|PRIO>=priority|TRY>=attempt|CREATED=created_ms|WHEN=then"
    return show.Table(f"{columns}|LAST FAILURE~=why", rows, empty="no such jobs")


def _then(job: dict[str, Any], now: int) -> str:
    if job.get("ended_ms"):
        return f"ended {show.when(job['ended_ms'], now)}"
    if job["status"] == "running" and job.get("started_ms"):
        return f"for {show.milliseconds(max(0, now - job['started_ms']))}"
    return f"due {show.when(job['due_ms'], now)}" if job.get("due_ms") else ""


# -- one job --------------------------------------------------------------------------------------


def job(*ids: str, history: Annotated[bool, option("show its history")] = False) -> Replies:
    """Show all there is to know about one or more jobs."""
    client = connect()
    if not ids:
        raise Refused("give the ids of jobs", "INVALID")
    for number, job_id in enumerate(ids):
        document = client.operations.history(job_id) if history else client.handle(job_id).document()
        if number and not as_json():
            print()
        yield document, lambda document=document: show.facts(document) if history else _print(document)


def _print(job: dict[str, Any]) -> None:
    shown = {**job, "argument": values.as_json(job.get("argument"))}  # nil is a value, too
    error = job.get("error")
    trace = error.get("traceback") if isinstance(error, dict) else None
    if isinstance(error, dict) and isinstance(trace, str):
        shown["error"] = {key: value for key, value in error.items() if key != "traceback"}
    show.facts(shown)
    if isinstance(trace, str):
        print()
        for line in trace.rstrip().splitlines():
            print(f"  {show.plain(line)}")


# -- results --------------------------------------------------------------------------------------


def result(
    id_: Annotated[str, Parameter(name="ID")],
    /,
    *,
    wait: Annotated[bool, option("wait for the job's end")] = False,
    wait_timeout: Annotated[Span | None, option("give up after this time, with exit code 5")] = None,
    raw: Annotated[bool, option("print text and binary data as they are, not as JSON")] = False,
) -> Replies:
    """Print a job's result.

    To look at it here is not to read it: it stays for the program as long as it would. Exit code 1 if the job failed,
    was cancelled or skipped, or has not ended; 3 if it keeps no result; 6 if that was read, or its time is over.
    """
    client = connect()
    if wait or wait_timeout is not None:
        await_end(client, id_, wait_timeout)
    value = outcome(client, id_)
    yield [value], lambda: _print_raw(value) if raw else print(values.as_json(value))


def await_end(client: Client, job_id: str, timeout_s: float | None) -> None:
    """Wait for a job. Raises TimeoutError."""
    try:
        client.handle(job_id).join(timeout_s)
    except TimeoutError:
        raise TimeoutError(f"job {job_id} has not ended within {show.duration(timeout_s or 0)}") from None


def outcome(client: Client, job_id: str) -> Any:
    """The result of a job that is done. Raises Refused, NotFound."""
    document = client.handle(job_id).document()
    status = document["status"]
    if status not in show.ENDED:
        raise Refused(f"job {job_id} has not ended, it is {status}; --wait waits for it", "CONFLICT")
    if status == "cancelled":
        raise Refused(f"job {job_id} was cancelled", "CANCELLED")
    if status == "skipped":
        raise Refused(f"job {job_id} was not needed: none that it depends on failed", "CANCELLED")
    if status == "error":
        why = show.one_line(document.get("message")) or document.get("reason") or "without a message"
        raise Refused(f"job {job_id} failed: {why}")
    # The document's: an operator who looks must not start the end of what the program is going to read.
    if "result" in document:
        return document["result"]
    if document.get("keep_result"):
        raise Refused(f"job {job_id} is done; its result is gone: it was read, or it expired", "EXPIRED")
    raise Refused(f"job {job_id} is done; it has no result, as it was not enqueued with --keep-result", "NOTFOUND")


def _print_raw(value: Any) -> None:
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if not isinstance(data, bytes):
        raise Refused(f"--raw: the result is no text and no binary data: {values.as_json(value)[:60]}", "INVALID")
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
