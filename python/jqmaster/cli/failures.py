"""`failures`: what failed for good, by group."""

from __future__ import annotations

from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.find import check_group
from jqmaster.cli.options import Client, Options, Replies, asks

_STEPS = 12  # of a trend
_SAMPLE = 100  # of the newest jobs of a group


def message_of(group: dict[str, Any]) -> str:
    """The newest message, without the group said twice."""
    return show.one_line(group.get("message")).removeprefix(f"{group['group']}: ")


def _print(group: dict[str, Any], now: int) -> None:
    def frequent(pairs: list[list[Any]]) -> str:
        return ", ".join(f"{name} {show.count(jobs)}" for name, jobs in pairs)

    show.facts(
        {
            "group": group["group"],
            "jobs": f"{show.count(group['count'])}, {show.count(sum(group['counts']))} of them lately",
            "trend": show.spark(group["counts"]),
            "first": show.both(group["first_ms"], now),
            "last": show.both(group["last_ms"], now),
            "newest": f"{group['id']}  {message_of(group)}",
            "of the newest": show.count(group["looked"]),
            "names": frequent(group["names"]),
            "queues": frequent(group["queues"]),
            "values": ", ".join(
                f"{path} {values.as_json(value)} {show.count(jobs)}" for path, value, jobs in group["values"]
            ),
        }
    )


@asks("""failures
list failures by group
The most recent first. `jobs --group GROUP` lists the jobs of a group,
`retry --group GROUP` has them run again, `discard --group GROUP` removes them.

--limit N=50   at most so many
--last SPAN=1h  RECENT and TREND are of so long
--group GROUP  only that one, with names, queues and values of its newest jobs
""")
def _failures(client: Client, options: Options) -> Replies:
    now = show.now_ms()
    told: dict[str, Any] = {"steps": _STEPS, "from_ms": now - round(options.last * 1000), "to_ms": now + 1}
    if options.group is not None:
        check_group(client, {"group": options.group})
        found = client.failures(options.group, sample=_SAMPLE, **told)
        yield found[0], lambda: _print(found[0], now)
        return
    groups = sorted(client.failures(**told), key=lambda group: -group["last_ms"])
    table = show.Table(
        "GROUP~1 | JOBS>:red | RECENT> | TREND? | FIRST | LAST | NEWEST MESSAGE~2", empty="no job has failed for good"
    )
    for group in groups[: options.limit]:
        first, last = show.when(group["first_ms"], now), show.when(group["last_ms"], now)
        recent = sum(group["counts"])
        trend = show.spark(group["counts"]) if recent else ""
        table.add(group["group"], show.count(group["count"]), show.some(recent), trend, first, last, message_of(group))
    left = len(groups) - options.limit
    table.more = f"… and {show.counted(left, 'group')} more; --limit" if left > 0 else ""
    yield groups[: options.limit], table
