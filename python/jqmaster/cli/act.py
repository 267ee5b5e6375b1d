"""What is done to jobs, those named or all that fit a filter: `retry`, `cancel`, `discard`, `kick`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

from jqmaster.cli import show, values
from jqmaster.cli.jobs import Chosen
from jqmaster.cli.kinds import Duration, option
from jqmaster.cli.reach import agreed, as_json, connect
from jqmaster.cli.status import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_OK, Coded, Refused

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client

Change = Callable[[list[str]], list[str]]
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
    client = connect()
    return act(client, "retry", ids, which, partial(client.call, "retry", queue=to))


def discard(*ids: Ids, which: Chosen | None = None) -> Coded:
    """Remove jobs that are not running, with their records.

    Give ids, or a filter: then the jobs that fit are counted, and you are asked.
    """
    client = connect()
    return act(client, "discard", ids, which, partial(client.call, "discard"))


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
    client = connect()
    change = partial(client.call, "cancel", force=force or None, dependents=dependents)
    if not ids and dependents == "refuse":
        raise Refused("--dependents refuse goes with ids, not with a filter", "INVALID")
    return act(client, "cancel", ids, which, change)


def kick(
    *ids: Ids,
    delay: Annotated[Duration | None, option("delay before they start again")] = None,
    which: Chosen | None = None,
) -> Coded:
    """Take running jobs from their workers and queue them again, without spending a retry.

    Give ids, or a filter such as --worker NAME: then the jobs that fit are counted, and you are asked. A worker goes on
    with a job until its next heartbeat: until then it may run twice.
    """
    client = connect()
    return act(client, "kick", ids, which, partial(client.call, "kick", delay=delay))


def _read(ids: Sequence[str]) -> list[str]:
    return sys.stdin.read().split() if values.STDIN in ids else list(ids)


def act(client: Client, what: str, ids: Sequence[str], which: Chosen | None, change: Change) -> Coded:
    """Change the jobs named, or after confirmation those that a filter finds."""
    which = which or Chosen()
    wanted = which.wanted(client)
    if bool(ids) == bool(wanted):
        raise Refused("give ids, or a filter such as --queue NAME" + ", not both" * bool(ids), "INVALID")
    if ids:
        return (yield from _named(what, _read(ids), change))
    states = ("error",) if "group" in wanted else _STATES[what]
    wanted["status"] = [state for state in wanted.get("status", states) if state in states]
    found: list[str] = []
    by_state: Counter[str] = Counter()
    with show.progress("looking") as more:
        for job in islice(client.jobs(brief=True, **wanted) if wanted["status"] else (), which.limit):
            found.append(job["id"])
            by_state[job["status"]] += 1
            more(1)
    parts = ", ".join(f"{show.count(by_state[state])} {state}" for state in show.STATES if by_state[state])
    fit = f"{show.counted(len(found), 'job fits', 'jobs fit')}: {parts}" if found else "no job fits"
    if which.dry_run:
        yield {"jobs": len(found), "by_status": dict(by_state)}, fit
        return EXIT_OK
    if not found:
        yield {"changed": 0}, fit
        return EXIT_OK
    if not as_json():
        print(fit, file=sys.stderr)
    if not agreed(f"{what} {show.counted(len(found), 'job')}", yes=which.yes):
        return EXIT_FAILED
    answers = Counter(_changed(what, found, change).values())
    unchanged = {"NOTFOUND", "CONFLICT", *(show.ENDED if what == "cancel" else ())}
    changed = sum(count for answer, count in answers.items() if answer not in unchanged)
    left = len(found) - changed
    yield (
        {"changed": changed, "left": left},
        f"{_DONE[what]} {show.counted(changed, 'job')}" + (f"; {show.count(left)} went on meanwhile" if left else ""),
    )
    return EXIT_OK


def _changed(what: str, ids: list[str], change: Change) -> dict[str, str]:
    answers: dict[str, str] = {}
    with show.progress(what, len(ids)) as more:
        for start in range(0, len(ids), _BATCH):
            part = ids[start : start + _BATCH]
            answers |= zip(part, change(part), strict=True)
            more(len(part))
    return answers


def _named(what: str, ids: list[str], change: Change) -> Coded:
    from jqmaster.cli.clients import JOB_ID
    from jqmaster.cli.run import complain

    # What can be no id would have all of them refused.
    answers = dict.fromkeys(ids, "NOTFOUND")
    answers |= _changed(what, [job_id for job_id in answers if JOB_ID.fullmatch(job_id)], change)
    from jqmaster.engine.calling import contract_of

    refused = {"NOTFOUND": "no such job", "CONFLICT": contract_of(what).conflict}
    for job_id, answer in answers.items():
        if answer in refused and not as_json():
            complain(f"{job_id}: {refused[answer]}", answer, as_json=False)
            continue
        # What had ended is left alone by cancel, and answers with its state.
        ended = what == "cancel" and answer in show.ENDED
        said = f"had ended: {answer}" if ended else _DONE[what] + ("" if answer == "queued" else f", {answer}")
        yield {"id": job_id, "answer": answer}, f"{job_id}  {said}"
    codes = {"CONFLICT": EXIT_FAILED, "NOTFOUND": EXIT_NOT_FOUND}
    return next((code for answer, code in codes.items() if answer in answers.values()), EXIT_OK)
