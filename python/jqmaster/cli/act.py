"""What is done to jobs, those named or all that fit a filter: `retry`, `cancel`, `discard`, `kick`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any, Literal

from jqmaster.cli import show, values
from jqmaster.cli.jobs import Chosen
from jqmaster.cli.kinds import Duration, option
from jqmaster.cli.reach import agreed, as_json, connect
from jqmaster.cli.status import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_OK, Coded, Refused

_BATCH = 1000
_DONE = {"retry": "retried", "discard": "discarded", "cancel": "cancelled", "kick": "kicked"}
# What a filter without --status means, and what it may take.
_STATES = {
    "retry": ("error", "cancelled", "retrying"),
    "discard": tuple(state for state in show.STATES if state != "running"),
    "cancel": ("queued", "scheduled", "blocked", "retrying", "running"),
    "kick": ("running",),
}

Ids = Annotated[str, option("ids of jobs; - reads them from stdin")]


def retry(
    *ids: Ids,
    to: Annotated[str | None, option("move them to this queue")] = None,
    which: Chosen | None = None,
) -> Coded:
    """Run failed, cancelled or retrying jobs again, now.

    Give ids, or a filter: then the jobs that fit are counted, and you are asked.
    """
    return _act("retry", ids, which, queue=to)


def discard(*ids: Ids, which: Chosen | None = None) -> Coded:
    """Remove jobs that are not running, with their records.

    Give ids, or a filter: then the jobs that fit are counted, and you are asked.
    """
    return _act("discard", ids, which)


def cancel(
    *ids: Ids,
    force: Annotated[bool, option("also running jobs that the settings protect")] = False,
    dependents: Annotated[
        Literal["leave", "cancel", "refuse"] | None, option("what to do with jobs that wait for these; default: leave")
    ] = None,
    which: Chosen | None = None,
) -> Coded:
    """Cancel waiting or running jobs.

    Give ids, or a filter: then the jobs that fit are counted, and you are asked.
    """
    return _act("cancel", ids, which, force=force or None, dependents=dependents)


def kick(
    *ids: Ids,
    delay: Annotated[Duration | None, option("delay before they start again")] = None,
    which: Chosen | None = None,
) -> Coded:
    """Take running jobs from their workers and queue them again, without spending a retry.

    Give ids, or a filter such as --worker NAME: then the jobs that fit are counted, and you are asked. A worker goes on
    with a job until its next heartbeat: until then it may run twice.
    """
    return _act("kick", ids, which, delay=delay)


def _act(what: str, ids: Sequence[str], which: Chosen | None, **options: Any) -> Coded:
    """Change the jobs named, or after confirmation those that a filter finds."""
    client, which = connect(), which or Chosen()
    wanted = which.wanted()
    if bool(ids) == bool(wanted):
        raise Refused("give ids, or a filter such as --queue NAME" + ", not both" * bool(ids), "INVALID")
    chosen = sys.stdin.read().split() if values.STDIN in ids else list(ids)
    if not ids:
        states = ("error",) if "group" in wanted else _STATES[what]
        wanted["status"] = [state for state in wanted.get("status", states) if state in states]
        found = client.jobs(brief=True, **wanted) if wanted["status"] else iter(())
        state_of = {job["id"]: job["status"] for job in islice(found, which.limit)}
        chosen, count = list(state_of), Counter(state_of.values())
        parts = ", ".join(f"{show.count(count[state])} {state}" for state in show.STATES if count[state])
        fit = f"{show.counted(len(chosen), 'job fits', 'jobs fit')}: {parts}" if chosen else "no job fits"
        if which.dry_run or not chosen:
            yield {"jobs": len(chosen), "by_status": dict(count)}, fit
            return EXIT_OK
        if not as_json():
            print(fit, file=sys.stderr)
        if not agreed(f"{what} {show.counted(len(chosen), 'job')}", yes=which.yes):
            return EXIT_FAILED
    answers: dict[str, str] = {}
    for start in range(0, len(chosen), _BATCH):
        part = chosen[start : start + _BATCH]
        answers |= zip(part, client.call(what, part, **options), strict=True)
    if ids:
        return (yield from _report(what, answers))
    unchanged = {"NOTFOUND", "CONFLICT", *(show.ENDED if what == "cancel" else ())}
    changed = sum(answer not in unchanged for answer in answers.values())
    left = len(chosen) - changed
    went_on = f"; {show.count(left)} went on meanwhile" if left else ""
    yield {"changed": changed, "left": left}, f"{_DONE[what]} {show.counted(changed, 'job')}{went_on}"
    return EXIT_OK


def _report(what: str, answers: dict[str, str]) -> Coded:
    from jqmaster.engine.calling import contract_of

    refused = {"NOTFOUND": "no such job", "CONFLICT": contract_of(what).conflict}
    for job_id, answer in answers.items():
        # What had ended is left alone by cancel, and answers with its state.
        ended = what == "cancel" and answer in show.ENDED
        done = f"had ended: {answer}" if ended else _DONE[what] + ("" if answer == "queued" else f", {answer}")
        yield {"id": job_id, "answer": answer}, f"{job_id}  {refused.get(answer, done)}"
    codes = {"CONFLICT": EXIT_FAILED, "NOTFOUND": EXIT_NOT_FOUND}
    return next((code for answer, code in codes.items() if answer in answers.values()), EXIT_OK)
