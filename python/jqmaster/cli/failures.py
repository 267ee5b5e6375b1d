"""`failures`: what failed for good, by group."""

from __future__ import annotations

from typing import Any

from jqmaster.cli import show
from jqmaster.cli.options import Client, Options, Replies, asks


def message_of(group: dict[str, Any]) -> str:
    """The newest message, without the group said twice."""
    return show.one_line(group.get("message")).removeprefix(f"{group['group']}: ")


@asks("""failures
list failures by group
The most recent first. `jobs --group GROUP` lists the jobs of a group,
`retry --group GROUP` has them run again, `discard --group GROUP` removes them.

--limit N=50  at most so many
""")
def _failures(client: Client, options: Options) -> Replies:
    groups = sorted(client.failures(), key=lambda group: -group["last_ms"])
    now = show.now_ms()
    table = show.Table("GROUP~1 | JOBS>:red | FIRST | LAST | NEWEST MESSAGE~2", empty="no job has failed for good")
    for group in groups[: options.limit]:
        first, last = show.when(group["first_ms"], now), show.when(group["last_ms"], now)
        table.add(group["group"], show.count(group["count"]), first, last, message_of(group))
    left = len(groups) - options.limit
    table.more = f"… and {show.counted(left, 'group')} more; --limit" if left > 0 else ""
    yield groups[: options.limit], table
