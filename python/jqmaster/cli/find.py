"""Finding jobs: `jobs`, `tags`; and the filter that others take as well."""

from __future__ import annotations

import difflib
from itertools import islice
from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Client, Options, Replies, asks
from jqmaster.errors import NotFound

FILTER = """\
[which jobs (those for which all of these are true)]
--queue NAME      in this queue
--status STATE...  in this state; may be given several times
--name NAME       of this name
--tag TAG         with this tag
--group GROUP     failed for good with this group (see failures)
--message TEXT    whose last failure says this somewhere
--worker NAME     that this worker runs, or ran last
--slower TIME     that ran, or run, for longer than this
--argument TEXT   whose argument contains this text
--match JSON      matched by this, as a constraint says it: '{"argument.customer": "acme"}'
--where LINE      what this line describes: 'customer.id:acme amount:>5 status:error,done slower:30s some text'
--older TIME      created longer ago than this: 90, 5m, 2h, 1d
--newer TIME      created more recently than this
"""


def wanted_by(options: Options) -> dict[str, Any]:
    """The filter, as `where` takes it; empty when nothing was given."""
    from jqmaster.engine.queryline import where_of

    names = ("queue", "status", "name", "tag", "group", "message", "worker", "argument")
    where = where_of(options.where or "", show.now_ms())
    where |= {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.slower is not None:
        where["slower_ms"] = round(options.slower * 1000)
    if options.match is not None:
        where["match"] = {**where.get("match", {}), **values.parsed(options.match, "--match")}
    for name, age_s in (("to_ms", options.older), ("from_ms", options.newer)):
        if age_s is not None:
            where[name] = show.now_ms() - round(age_s * 1000)
    return where


def check_group(client: Client, wanted: dict[str, Any]) -> None:
    """Raise NotFound for a group that no job failed with, naming those that may be meant."""
    group = wanted.get("group")
    if group is None or client.failures(group):
        return
    known = [one["group"] for one in client.failures()]
    last = group.rpartition(".")[2]  # messages have an exception's name without its module
    close = [one for one in known if one.rpartition(".")[2] == last] or difflib.get_close_matches(group, known, 3)
    meant = f"; did you mean {' or '.join(close)}?" if close else "; jqmaster failures lists the groups"
    raise NotFound(f"no job has failed for good in the group {group}{meant}")


@asks(
    f"""jobs
find jobs

--limit N=20  at most so many
--all         all of them
--newest      the newest first, within a state
--recent      over all queues: what runs, then what ended last, then what waits
--full        with --json: with argument, result and error
--ids         print the ids only, for retry - and others
{FILTER}"""
)
def _jobs(client: Client, options: Options) -> Replies:
    wanted = wanted_by(options)
    if options.newest and "status" not in wanted and not {"tag", "group"} & wanted.keys():
        wanted["status"] = list(show.STATES)
    check_group(client, wanted)
    found = client.jobs(
        newest=options.newest, recent=options.recent, brief=not (options.full and options.json), **wanted
    )
    if options.ids:
        for job in found if options.all else islice(found, options.limit):
            print(job["id"])
        return
    if options.json:
        yield found if options.all else islice(found, options.limit), ""
        return
    shown = list(found if options.all else islice(found, options.limit + 1))
    more = not options.all and len(shown) > options.limit
    table = _table(shown[: options.limit] if more else shown)
    table.more = f"… and more; --limit N or --all shows them (shown: {options.limit})" if more else ""
    yield None, table


def _table(jobs: list[dict[str, Any]]) -> show.Table:
    now = show.now_ms()
    same_queue = all(job["queue"] == job["name"] for job in jobs)
    columns = "ID | NAME~2 | QUEUE~2 | STATUS | PRIO> | TRY> | CREATED~4? | WHEN | LAST FAILURE~3"
    table = show.Table(columns, empty="no such jobs")
    for job in jobs:
        queue = "" if same_queue else job["queue"]
        started = (job["priority"] or "", job["attempt"] or "", show.when(job["created_ms"], now), _then(job, now))
        why = show.one_line(job.get("message")) or job.get("reason")
        table.add(job["id"], job["name"], queue, show.state(job["status"]), *started, why)
    return table


def _then(job: dict[str, Any], now: int) -> str:
    if job.get("ended_ms"):
        return f"ended {show.when(job['ended_ms'], now)}"
    if job["status"] == "running" and job.get("started_ms"):
        return f"for {show.milliseconds(max(0, now - job['started_ms']))}"
    return f"due {show.when(job['due_ms'], now)}" if job.get("due_ms") else ""


@asks("""search
find anything by a part of its name, and jobs by a line

text TEXT
--limit N=5  at most so many of each kind, up to 20
""")
def _search(client: Client, options: Options) -> Replies:
    found = client.search(options.text, options.limit)
    table = show.Table("KIND | NAME~1 | WHAT~2", empty=f"nothing is called so (jobs looked at: {found['looked']})")
    for kind in ("queues", "names", "constraints", "schedules", "tags", "groups"):
        for name in found[kind]:
            table.add("failures" if kind == "groups" else kind.removesuffix("s"), name, "")
    for worker in found["workers"]:
        table.add("worker", worker["name"], worker["id"])
    for job in found["jobs"]:
        table.add("job", job["id"], f"{job['name']}: {job['status']}")
    table.more = f"… and more {', '.join(found['more'])}" if found["more"] else ""
    yield found, table


@asks("""tags
list tags with the number of jobs that have them

--top N  the most used, instead of all in order of name
""")
def _tags(client: Client, options: Options) -> Replies:
    found = list(client.tags(options.top))
    table = show.Table("TAG~1 | JOBS>", ((tag, show.count(count)) for tag, count in found), empty="no tags")
    yield [{"tag": tag, "count": count} for tag, count in found], table
