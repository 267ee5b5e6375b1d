"""Looking at one job: `get`, `result`, `history`; `explain` is in `why`."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show, values, why
from jqmaster.cli.options import Parser, command, reach, span
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_EXPIRED, EXIT_NOT_FOUND, EXIT_OK, EXIT_USAGE, Refused
from jqmaster.wire.fields import FIELDS

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client

_ENDED = ("done", "error", "cancelled")
_RESULT = """\
Prints the value as JSON (--raw: text and binary data as they are). Exit code
1 if the job failed or was cancelled, or has not ended; 3 if it keeps no
result; 6 if that was read, or its time is over."""


def add(commands: Any) -> None:
    get = reach(command(commands, "get", _get, "show all there is to know about jobs"))
    get.add_argument("ids", metavar="ID", nargs="+")
    result = reach(command(commands, "result", _result, "print a job's result", _RESULT))
    result.add_argument("id", metavar="ID")
    result.option("--wait", action="store_true", help="wait for the job's end")
    result.option("--wait-timeout", type=span, metavar="TIME", help="but no longer; then exit with 5")
    result.option("--raw", action="store_true", help="text and binary data without JSON around them")
    explain = reach(command(commands, "explain", why.explain, "say why a job waits, and for what"))
    explain.add_argument("id", metavar="ID")
    history = reach(command(commands, "history", _history, "show what happened to a job, and when"))
    history.add_argument("id", metavar="ID")


def _get(options: argparse.Namespace, _parser: Parser) -> int:
    from jqmaster.errors import NotFound

    code = EXIT_OK
    with open_client(options) as client:
        for number, job_id in enumerate(options.ids):
            try:
                document = client.get(job_id)
            except NotFound as error:
                print(f"jqmaster: {show.plain(error.message)}", file=sys.stderr)
                code = EXIT_NOT_FOUND
                continue
            if options.json:
                values.print_json(document)
                continue
            if number:
                print()
            _print_job(document)
    return code


def _print_job(job: dict[str, Any]) -> None:
    now = show.now_ms()
    attempt = str(job["attempt"]) if job["attempt"] else None
    if attempt and job["retry_count"]:
        attempt += f", {show.counted(job['retry_count'], 'failure')} of at most {job['max_retry'] + 1}"
    show.facts(
        [
            ("id", job["id"]),
            ("name", job["name"]),
            ("queue", job["queue"]),
            ("status", show.state(job["status"])),
            ("priority", job["priority"] or None),
            ("created", _moment(job.get("created_ms"), now)),
            ("ready", _moment(job.get("ready_ms"), now)),
            ("attempt", attempt),
            ("started", _moment(job.get("started_ms"), now)),
            (_due_name(job["status"]), _moment(job.get("due_ms"), now)),
            ("expires", _moment(job.get("expires_ms"), now)),
            ("ended", _moment(job.get("ended_ms"), now)),
            ("took", _took(job)),
            ("worker", job.get("worker_id")),
            ("progress", _progress(job)),
            ("tags", ", ".join(job.get("tags") or [])),
            *((one.name.replace("_", " "), job.get(one.name)) for one in FIELDS if one.rare and one.kind == "name"),
            ("depends on", ", ".join(job.get("depends") or [])),
            ("waits for", ", ".join(job.get("waits_for") or [])),
            ("schedule", job.get("schedule")),
            ("lease", show.duration(job["timeout"])),
            ("max runtime", show.duration(job["max_runtime"]) if job.get("max_runtime") else None),
            ("reason", job.get("reason")),
            ("group", job.get("group")),
            ("message", job.get("message")),
            ("argument", _value(job.get("argument"))),
            ("error", None if job.get("error") is None else _value(job["error"])),
            ("result", _value(job.get("result")) if job.get("result") is not None else None),
        ]
    )
    trace = job.get("error")
    if isinstance(trace, dict) and isinstance(trace.get("traceback"), str):
        print()
        for line in trace["traceback"].rstrip().splitlines():
            print(f"  {show.plain(line)}")


def _due_name(status: str) -> str:
    return {"running": "lease ends", "retrying": "next attempt"}.get(status, "due")


def _moment(moment_ms: float | None, now: int) -> str | None:
    return None if moment_ms is None else f"{show.clock(moment_ms)}, {show.when(moment_ms, now)}"


def _took(job: dict[str, Any]) -> str | None:
    if job["status"] not in ("done", "error") or not job.get("started_ms") or not job.get("ended_ms"):
        return None
    return show.milliseconds(job["ended_ms"] - job["started_ms"])


def _progress(job: dict[str, Any]) -> str | None:
    if job.get("progress") is None and not job.get("progress_message"):
        return None
    number = job.get("progress")
    return " ".join(str(one) for one in (number, job.get("progress_message")) if one not in (None, ""))


def _value(value: Any) -> str:
    shown = value
    if isinstance(value, dict) and "traceback" in value:
        shown = {key: one for key, one in value.items() if key != "traceback"}
    return values.as_json(shown)


# -- results --------------------------------------------------------------------------------------


def _result(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        if options.wait or options.wait_timeout is not None:
            return await_end(client, options.id, options.wait_timeout, options)
        return _print_outcome(client, client.get(options.id), options)


def await_end(client: Client, job_id: str, timeout_s: float | None, options: argparse.Namespace) -> int:
    """Wait for a job, and print what came of it. Raises TimeoutError."""
    try:
        client.handle(job_id).join(timeout_s)
    except TimeoutError:
        raise TimeoutError(f"job {job_id} has not ended within {show.duration(timeout_s or 0)}") from None
    return _print_outcome(client, client.get(job_id), options)


def _print_outcome(client: Client, document: dict[str, Any], options: argparse.Namespace) -> int:
    from jqmaster.errors import Expired

    status, job_id = document["status"], document["id"]
    if status not in _ENDED:
        raise Refused(f"job {job_id} has not ended, it is {status}; --wait waits for it", code="CONFLICT")
    if status == "cancelled":
        raise Refused(f"job {job_id} was cancelled", code="CANCELLED")
    if status == "error":
        why = show.one_line(document.get("message")) or document.get("reason") or "without a message"
        raise Refused(f"job {job_id} failed: {why}", code="FAILED")
    try:
        result = client.ask(lambda it: it.result(job_id))[1]
    except Expired:
        gone = "its result is gone: it was read, or its time is over"
        raise Refused(f"job {job_id} is done; {gone}", EXIT_EXPIRED, "EXPIRED") from None
    if result is None:
        kept = "was not enqueued with --keep-result"
        raise Refused(f"job {job_id} is done; it has no result, as it {kept}", EXIT_NOT_FOUND, "NOTFOUND")
    value = client.serializer.loads(result)
    if getattr(options, "raw", False):
        _print_raw(value)
    else:
        values.print_json(value)
    return EXIT_OK


def _print_raw(value: Any) -> None:
    if isinstance(value, bytes):
        sys.stdout.buffer.write(value)
    elif isinstance(value, str):
        sys.stdout.buffer.write(value.encode("utf-8", "surrogateescape"))
    else:
        raise Refused(f"--raw: the result is no text and no binary data: {values.as_json(value)[:60]}", EXIT_USAGE)
    sys.stdout.flush()


# -- what happened --------------------------------------------------------------------------------

_EVENT_COLOURS = {
    "done": "green", "failed": "red", "lapsed": "red", "expired": "red", "dependency": "red",
    "started": "cyan",    "cancelled": "yellow", "released": "yellow",
}  # fmt: skip


def _history(options: argparse.Namespace, _parser: Parser) -> int:
    with open_client(options) as client:
        told = client.ask(lambda it: it.history(options.id))
    if options.json:
        values.print_json(told)
        return EXIT_OK
    if told.get("forgotten"):
        print(f"({show.counted(told['forgotten'], 'earlier attempt')} not shown)")
    table = show.Table(
        [show.Column("TIME"), show.Column("AFTER", right=True), show.Column("EVENT"),
         show.Column("ATTEMPT", right=True), show.Column("WORKER", shrinks=1), show.Column("WHAT", shrinks=2)]
    )  # fmt: skip
    days = {show.clock(moment)[:10] for moment in (*(one["time_ms"] for one in told["events"]), show.now_ms())}
    one_day = len(days) == 1
    before = None
    for event in told["events"]:
        after = "" if before is None else show.milliseconds(event["time_ms"] - before)
        before = event["time_ms"]
        group, reason = event.get("group"), event.get("reason")
        message = show.one_line(event.get("message")).removeprefix(f"{group}: ")
        what = ": ".join(one for one in (group or reason, message) if one)
        moment = show.clock(event["time_ms"])
        table.add(
            moment.partition(" ")[2] if one_day else moment, after,
            (event["event"], _EVENT_COLOURS.get(event["event"])),
            event.get("attempt"), event.get("worker_id"), what,
        )  # fmt: skip
    table.print()
    return EXIT_OK
