"""`failures`: what failed for good, by group."""

from __future__ import annotations

from typing import Annotated, Any

from jqmaster.cli import show, values
from jqmaster.cli.jobs import check_group
from jqmaster.cli.kinds import Count, Span, option
from jqmaster.cli.reach import connect
from jqmaster.cli.status import Replies

_STEPS = 12  # of a trend
_SAMPLE = 100  # of the newest jobs of a group


def table(groups: list[dict[str, Any]]) -> show.Table:
    rows = []
    for group in groups:
        message = show.one_line(group.get("message")).removeprefix(f"{group['group']}: ")
        counts = group.get("counts") or []
        trend = show.spark(counts) if any(counts) else ""
        rows.append({**group, "message": message, "recent": sum(counts), "trend": trend})
    columns = "FAILURES~=group|JOBS>=count:red|RECENT>=recent|TREND=trend|FIRST=first_ms|LAST=last_ms|MESSAGE~=message"
    return show.Table(columns, rows, empty="no job has failed for good")


def failures(
    *,
    limit: Annotated[Count, option("at most this many")] = 50,
    last: Annotated[Span, option("time span of RECENT and TREND, in s")] = 3600,
    group: Annotated[str | None, option("only this group, with names, queues and values of its newest jobs")] = None,
) -> Replies:
    """List failures by group, the most recent first.

    jobs --group GROUP lists the jobs of a group, retry --group GROUP has them run again, discard --group GROUP removes
    them.
    """
    client, now = connect(), show.now_ms()
    asked: dict[str, Any] = {"steps": _STEPS, "from_ms": now - round(last * 1000), "to_ms": now + 1}
    if group is not None:
        check_group(client, group)
        [found] = client.call("failures", group, sample=_SAMPLE, **asked).documents
        parts = {name: [f"{one} {show.count(jobs)}" for one, jobs in found[name]] for name in ("names", "queues")}
        parts["values"] = [
            f"{path} {values.as_json(value)} {show.count(jobs)}" for path, value, jobs in found["values"]
        ]
        yield found, lambda: show.facts({**found, **parts, "counts": show.spark(found["counts"])})
        return
    groups = sorted(client.each("failures", **asked), key=lambda one: -one["last_ms"])
    made = table(groups[:limit])
    made.more = f"… and {show.counted(len(groups) - limit, 'group')} more; --limit" if len(groups) > limit else ""
    if not groups and (
        retrying := client.call("jobs", where={"status": "retrying"}, count=_SAMPLE, brief=True).documents
    ):
        some = f"{show.count(len(retrying))}{'+' * (len(retrying) == _SAMPLE)}"
        made.empty += f"; {some} will be retried: jqmaster jobs --status retrying"
    yield groups[:limit], made
