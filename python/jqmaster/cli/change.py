"""`retry`, `discard`, `cancel`, `kick`: of jobs named, or of all that fit a filter; `change`; `free`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show, values
from jqmaster.cli.enqueue import option_of, told_of
from jqmaster.cli.find import FILTER, check_group, wanted_by
from jqmaster.cli.options import Client, Coded, Misused, Options, Replies, asks
from jqmaster.cli.progress import Progress
from jqmaster.cli.reach import agreed, complain
from jqmaster.cli.status import EXIT_FAILED, EXIT_NOT_FOUND, EXIT_OK, Refused
from jqmaster.manifest.fields import FIELDS

if TYPE_CHECKING:
    from jqmaster.engine.engine import Operations

Change = Callable[[list[str]], list[str]]
_BATCH = 1000
_MOST_COUNTED = 100_000
_CHANGED = [field for field in FIELDS if field.changed]
_CHANGES = "\n".join(option_of(field).partition(" (default")[0] for field in _CHANGED)


_DONE = {"retry": "retried", "discard": "discarded", "cancel": "cancelled", "kick": "kicked", "change": "changed"}
_CONFLICTS = {
    "retry": "neither failed, cancelled, skipped nor waiting for a retry; or its unique key is another's",
    "discard": "it runs; cancel it first",
    "cancel": "it runs, and the settings protect running jobs; --force",
    "kick": "it does not run",
    "change": "it runs or has ended, and what is given cannot change then",
}
# What a filter without --status means, and what it may take.
_STATES = {
    "retry": ("error", "cancelled", "retrying"),
    "discard": tuple(state for state in show.STATES if state != "running"),
    "cancel": ("queued", "scheduled", "blocked", "retrying", "running"),
}

_MORE = """\
Give ids (- reads them from stdin), or a filter. With a filter the jobs that
fit are counted and you are asked; --yes does not ask, --dry-run only counts.

ids ID*
--yes -y   do not ask
--dry-run  only count the jobs that fit
"""


@asks(
    f"""retry
have jobs that failed, were cancelled or wait for a retry run again
{_MORE}--to NAME  in this queue instead of their own
{FILTER}"""
)
def _retry(client: Client, options: Options) -> Coded:
    return _of_jobs(client, options, partial(client.retry, queue=options.to), queue=options.to)


@asks(
    f"""discard
remove jobs that do not run, with all there is of them
{_MORE}{FILTER}"""
)
def _discard(client: Client, options: Options) -> Coded:
    return _of_jobs(client, options, client.discard)


@asks(
    f"""cancel
cancel jobs that wait or run
{_MORE}--force    also running jobs where the settings protect them
--dependents leave|cancel|refuse  jobs that wait for these (default: leave)
--atomic   all of the ids or none
{FILTER}"""
)
def _cancel(client: Client, options: Options) -> Coded:
    cancel = partial(client.cancel, force=options.force, dependents=options.dependents)
    if options.dependents == "refuse" and not options.ids:
        raise Refused("--dependents refuse goes with ids, not with a filter", "INVALID")
    if options.atomic and not options.ids:
        raise Refused("--atomic goes with ids, not with a filter", "INVALID")
    if options.atomic:
        return _named(_ids(options), options, partial(cancel, atomic=True), at_once=True)
    return _of_jobs(client, options, cancel, force=options.force or None)


@asks("""free
free a unique key; its job goes on without one

key KEY
""")
def _free(client: Client, options: Options) -> Replies:
    job_id = client.free(options.key)
    yield {"id": job_id}, f"{options.key} is free; it was that of {job_id}"


@asks("""kick
take running jobs from their workers; they wait again

ids ID*       or - for stdin
--queue NAME  all that run of this queue
--delay TIME  they start again after so long
""")
def _kick(client: Client, options: Options) -> Coded:
    ids = _ids(options)
    if bool(ids) == (options.queue is not None):
        raise Misused(options.parser.prog, "give ids, or --queue NAME")
    if ids:
        return (yield from _named(ids, options, partial(client.kick, delay=options.delay)))
    kicked = client.kick_queue(options.queue, delay=options.delay)
    yield {"changed": kicked}, f"kicked {show.counted(kicked, 'job')}"
    return EXIT_OK


@asks(
    f"""change
change jobs that have not ended
Only what is given changes; --tag gives all tags anew.

ids ID...            or - for stdin
{_CHANGES}
--argument ARGUMENT  instead of the one it has: JSON, @FILE or -
"""
)
def _change(client: Client, options: Options) -> Coded:
    changes = told_of(options, _CHANGED)
    argument = b"" if options.argument is None else values.argument(options.argument)
    if not changes and not argument:
        raise Misused(options.parser.prog, "say what is to change, such as --priority 5")

    def change(ids: list[str]) -> list[str]:
        return client.ask(lambda it: it.change([({"id": job_id, **changes}, argument) for job_id in ids]))

    return (yield from _named(_ids(options), options, change))


def _ids(options: Options) -> list[str]:
    return sys.stdin.read().split() if "-" in options.ids else list(options.ids)


def _of_jobs(client: Client, options: Options, change: Change, **more: Any) -> Coded:
    """Change the jobs named, or those that a filter finds, which then takes `more`."""
    ids, wanted = _ids(options), wanted_by(options)
    if ids and wanted:
        raise Misused(options.parser.prog, "give ids or a filter, not both")
    if ids:
        return (yield from _named(ids, options, change))
    if wanted:
        return (yield from _filtered(client, options, wanted, more))
    if not options.ids:
        raise Misused(options.parser.prog, "give ids, or a filter such as --queue NAME")
    return EXIT_OK


def _named(ids: list[str], options: Options, change: Change, *, at_once: bool = False) -> Coded:
    """`at_once`: in one call, however many there are, or not at all."""
    from jqmaster.cli.clients import JOB_ID

    # What can be no id would have all of them refused.
    answers = dict.fromkeys(ids, "NOTFOUND")
    sent = [job_id for job_id in answers if JOB_ID.fullmatch(job_id)]
    if at_once and (odd := [job_id for job_id in answers if job_id not in sent]):
        raise Refused(f"no such job: {odd[0]}; none was changed", "NOTFOUND")
    batch = max(1, len(sent)) if at_once else _BATCH
    with Progress(f"{options.command}:", len(sent)) as progress:
        for start in range(0, len(sent), batch):
            part = sent[start : start + batch]
            answers |= zip(part, change(part), strict=True)
            progress.add(len(part))
    refused = {"NOTFOUND": "no such job", "CONFLICT": _CONFLICTS[options.command]}
    for job_id, answer in answers.items():
        if answer in refused and not options.json:
            complain(f"{job_id}: {refused[answer]}", answer, as_json=False)
        else:
            yield {"id": job_id, "answer": answer}, f"{job_id}  {_told(options.command, answer)}"
    told = set(answers.values())
    return EXIT_FAILED if "CONFLICT" in told else EXIT_NOT_FOUND if "NOTFOUND" in told else EXIT_OK


def _told(what: str, answer: str) -> str:
    # What was finished is left alone, and answers with its state.
    if what == "cancel" and answer in show.ENDED:
        return f"had ended: {answer}"
    if answer == "queued" and what != "change":
        return _DONE[what]
    return f"{_DONE[what]}, {'was ' if what in ('cancel', 'discard') else ''}{answer}"


# -- all that fit ---------------------------------------------------------------------------------


def _filtered(client: Client, options: Options, wanted: dict[str, Any], more: dict[str, Any]) -> Coded:
    what = options.command
    check_group(client, wanted)
    states = [state for state in wanted.get("status", _STATES[what]) if state in _STATES[what]]
    if "group" in wanted:
        states = [state for state in states if state == "error"]
    total = 0
    if options.dry_run or not options.yes:
        by_state = _counted(client, {**wanted, "status": states})
        total = by_state.total()
        is_more = total == _MOST_COUNTED
        parts = ", ".join(f"{show.count(by_state[state])} {state}" for state in show.STATES if by_state[state])
        fit = f"{'more than ' if is_more else ''}{show.counted(total, 'job fits', 'jobs fit')}: {parts}"
        if options.dry_run:
            yield {"jobs": total, "more": is_more, "by_status": dict(by_state)}, fit if total else "no job fits"
            return EXIT_OK
        if not options.json:
            print(fit if total else "no job fits", file=sys.stderr)
        these = "all of them" if is_more else f"these {show.count(total)}" if total > 1 else "this one"
        if not total:
            return EXIT_OK
        if not agreed(f"{what} {these}", refusal=f"{what} them"):
            return EXIT_FAILED
    changed = _steps(client, what, wanted | ({"status": states} if "status" in wanted else {}), total, more)
    yield {"changed": changed}, f"{_DONE[what]} {show.counted(changed, 'job')}"
    return EXIT_OK


def _counted(client: Client, wanted: dict[str, Any]) -> Counter[str]:
    """How many jobs fit, by state; no more than one looks at."""
    by_state: Counter[str] = Counter()
    with Progress("counting") as progress:
        for job in client.jobs(brief=True, **wanted) if wanted["status"] else ():
            by_state[job["status"]] += 1
            progress.add(1)
            if by_state.total() == _MOST_COUNTED:
                break
    return by_state


def _steps(client: Client, what: str, wanted: dict[str, Any], total: int, more: dict[str, Any]) -> int:
    cursor: str | None = None
    changed = 0

    async def step(engine: Operations) -> tuple[str, int]:
        found: tuple[str, int] = await getattr(engine, f"{what}_where")(wanted, cursor=cursor, **more)
        return found

    with Progress(f"{what}:", total or None) as progress:
        while cursor != "":
            cursor, number = client.ask(step)
            changed += number
            progress.add(number)
    return changed
