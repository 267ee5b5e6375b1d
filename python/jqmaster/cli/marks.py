"""`mark` and `marks`: moments that somebody put a name to, such as a deploy; `changes`: what is different since one."""

from __future__ import annotations

from jqmaster.cli import show
from jqmaster.cli.options import Client, Options, Replies, asks
from jqmaster.cli.status import Refused


@asks("""mark
put a name to a moment, such as a deploy
It stands in the charts of the web UI. The same text again within a minute is
the same mark, so each of many hosts may say it.

text TEXT    what happened: v1.4
--at MOMENT  when: 2030-01-31T18:00, or Unix seconds (default: now)
""")
def _mark(client: Client, options: Options) -> Replies:
    mark = client.mark(options.text, options.at)
    yield mark, f"{show.clock(mark['time_ms'])}  {show.plain(mark['text'])}"


@asks("""marks
list marks, newest first

--limit N=50  at most so many
""")
def _marks(client: Client, options: Options) -> Replies:
    marks, now = client.marks()[: options.limit], show.now_ms()
    table = show.Table("TIME | WHEN | WHO~1 | WHAT~2", empty="nobody has set a mark: jqmaster mark v1.4")
    for mark in marks:
        at_ms = mark["time_ms"]
        table.add(show.clock(at_ms), show.when(at_ms, now), mark["actor"] or "-", mark["text"])
    yield marks, table


@asks("""changes
show what is different since a mark, the largest change first
Of each queue and name: what ended and what failed a minute, and the time that
95 of 100 successful attempts did not exceed, before and after.

text TEXT?   the mark (default: the newest)
--at MOMENT  since then instead
--span SPAN  so long before and after (default: 1 hour)
--limit N=20  at most so many
""")
def _changes(client: Client, options: Options) -> Replies:
    since = options.at if options.at is not None else _moment_of(client, options.text)
    found = client.changes(since, span=options.span or 3600, top=options.limit)
    table = show.Table(
        "QUEUE~1|NAME~1|CHANGE>|ENDED/MIN>|AFTER>|FAILING/MIN>|AFTER>|RUN95>|AFTER>", empty="nothing to compare yet"
    )
    for row in found["rows"]:
        before, after = row["before"], row["after"]
        cells = [f"{side[figure]:,.1f}" for figure in ("ended", "failing") for side in (before, after)]
        runs = ["" if side["run_p95"] is None else show.milliseconds(side["run_p95"]) for side in (before, after)]
        table.add(row["queue"], row["name"], f"{row['change']:,.1f}x {row['of']}", *cells, *runs)
    table.more = f"only {show.count(found['pairs'])} queues and names were looked at" if found["more"] else ""
    yield found, table


def _moment_of(client: Client, text: str | None) -> float:
    marks = client.marks()
    for mark in marks:
        if text is None or mark["text"] == text:
            return float(mark["time_ms"]) / 1000
    raise Refused("there is no such mark; `jqmaster marks` lists them" if marks else "there is no mark", "NOTFOUND")
