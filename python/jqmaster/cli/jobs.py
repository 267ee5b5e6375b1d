"""Looking at one job: `get`, `result`, `history`."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Client, Coded, Options, Replies, asks
from jqmaster.cli.reach import complain
from jqmaster.cli.status import EXIT_NOT_FOUND, EXIT_OK, Refused
from jqmaster.errors import NotFound
from jqmaster.manifest.fields import FIELDS, Field


@asks("""get
show all there is to know about jobs

ids ID...
""")
def _get(client: Client, options: Options) -> Coded:
    code = EXIT_OK
    for number, job_id in enumerate(options.ids):
        try:
            document = client.get(job_id)
        except NotFound as error:
            complain(error.message, error.code, as_json=options.json)
            code = EXIT_NOT_FOUND
            continue
        if number and not options.json:
            print()
        yield document, partial(_print, document)
    return code


def _print(job: dict[str, Any]) -> None:
    now = show.now_ms()
    attempt = str(job["attempt"]) if job["attempt"] else None
    if attempt and job["retry_count"]:
        attempt += f", {show.counted(job['retry_count'], 'failure')} of at most {job['max_retry'] + 1}"
    show.facts(
        {
            "id": job["id"],
            "name": job["name"],
            "queue": job["queue"],
            "status": show.state(job["status"]),
            "priority": job["priority"] or None,
            "created": show.both(job.get("created_ms"), now),
            "ready": show.both(job.get("ready_ms"), now),
            "attempt": attempt,
            "started": show.both(job.get("started_ms"), now),
            _due_name(job["status"]): show.both(job.get("due_ms"), now),
            "expires": show.both(job.get("expires_ms"), now),
            "ended": show.both(job.get("ended_ms"), now),
            "took": _took(job),
            "worker": job.get("worker_id"),
            "progress": _progress(job),
            **{one.name.replace("_", " "): _told(one, job.get(one.name)) for one in FIELDS if one.rare and one.shown},
            "waits for": ", ".join(job.get("waits_for") or []),
            "schedule": job.get("schedule"),
            "lease": show.duration(job["timeout"]),
            "reason": job.get("reason"),
            "group": job.get("group"),
            "message": job.get("message"),
            "argument": _value(job.get("argument")),
            "error": None if job.get("error") is None else _value(job["error"]),
            "result": None if job.get("result") is None else _value(job["result"]),
        }
    )
    trace = job.get("error")
    if isinstance(trace, dict) and isinstance(trace.get("traceback"), str):
        print()
        for line in trace["traceback"].rstrip().splitlines():
            print(f"  {show.plain(line)}")


def _told(field: Field, value: Any) -> str | None:
    """What a job was told, where it was."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(value)
    return show.duration(value) if field.kind == "seconds" else values.as_json(value)


def _due_name(status: str) -> str:
    return {"running": "lease ends", "retrying": "next attempt"}.get(status, "due")


def _took(job: dict[str, Any]) -> str | None:
    if job["status"] not in ("done", "error") or not job.get("started_ms") or not job.get("ended_ms"):
        return None
    return show.milliseconds(job["ended_ms"] - job["started_ms"])


def _progress(job: dict[str, Any]) -> str:
    return " ".join(str(one) for one in (job.get("progress"), job.get("progress_message")) if one not in (None, ""))


def _value(value: Any) -> str:
    if isinstance(value, dict):
        value = {key: one for key, one in value.items() if key != "traceback"}
    return values.as_json(value)


# -- results --------------------------------------------------------------------------------------


@asks("""result
print a job's result
Looking at it here is not reading it: it stays for the program as long as it
would. Prints the value as JSON (--raw: text and binary data as they are). Exit
code 1 if the job failed, was cancelled or skipped, or has not ended; 3 if it
keeps no result; 6 if that was read, or its time is over.

id ID
--wait               wait for the job's end
--wait-timeout SPAN  but no longer; then exit with 5
--raw                text and binary data without JSON around them
""")
def _result(client: Client, options: Options) -> Replies:
    if options.wait or options.wait_timeout is not None:
        await_end(client, options.id, options.wait_timeout)
    value = outcome(client, options.id)
    yield [value], partial(_print_raw, value) if options.raw else partial(print, values.as_json(value))


def await_end(client: Client, job_id: str, timeout_s: float | None) -> None:
    """Wait for a job. Raises TimeoutError."""
    try:
        client.handle(job_id).join(timeout_s)
    except TimeoutError:
        raise TimeoutError(f"job {job_id} has not ended within {show.duration(timeout_s or 0)}") from None


def outcome(client: Client, job_id: str) -> Any:
    """The result of a job that is done. Raises Refused, NotFound."""
    document = client.get(job_id)
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
        gone = "its result is gone: it was read, or it expired"
        raise Refused(f"job {job_id} is done; {gone}", "EXPIRED")
    never = "it has no result, as it was not enqueued with --keep-result"
    raise Refused(f"job {job_id} is done; {never}", "NOTFOUND")


def _print_raw(value: Any) -> None:
    if isinstance(value, bytes):
        sys.stdout.buffer.write(value)
    elif isinstance(value, str):
        sys.stdout.buffer.write(value.encode("utf-8", "surrogateescape"))
    else:
        raise Refused(f"--raw: the result is no text and no binary data: {values.as_json(value)[:60]}", "INVALID")
    sys.stdout.flush()


# -- what happened --------------------------------------------------------------------------------

_EVENT_COLOURS = {"done": "green", "started": "cyan", "cancelled": "yellow", "skipped": "dim", "released": "yellow"}
_EVENT_COLOURS |= dict.fromkeys(("failed", "lapsed", "expired", "dependency"), "red")


@asks("""history
show what happened to a job, and when

id ID
""")
def _history(client: Client, options: Options) -> Replies:
    told = client.ask(lambda it: it.history(client.job_id(options.id)))
    yield told, lambda: _print_history(told)


def _print_history(told: dict[str, Any]) -> None:
    if told.get("forgotten"):
        print(f"({show.counted(told['forgotten'], 'earlier attempt')} not shown)")
    table = show.Table("TIME | AFTER> | EVENT | ATTEMPT> | WORKER~1 | WHAT~2")
    days = {show.clock(moment)[:10] for moment in (*(one["time_ms"] for one in told["events"]), show.now_ms())}
    before = None

    def at(moment: int) -> str:
        return show.clock(moment).partition(" ")[2] if len(days) == 1 else show.clock(moment)

    for event in told["events"]:
        after = "" if before is None else show.milliseconds(event["time_ms"] - before)
        before = event["time_ms"]
        group, reason = event.get("group"), event.get("reason")
        message = show.one_line(event.get("message")).removeprefix(f"{group}: ")
        what = ": ".join(one for one in (group or reason, message) if one)
        if "held_by" in event:
            what = f"held by {show.one_line(event['held_by'])} until {at(event['held_until_ms'])}"
        kind = event["event"], _EVENT_COLOURS.get(event["event"])
        table.add(at(event["time_ms"]), after, kind, event.get("attempt"), event.get("worker_id"), what)
    table.print()
