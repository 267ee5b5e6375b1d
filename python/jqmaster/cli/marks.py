"""`mark` and `marks`: moments that somebody put a name to, such as a deploy."""

from __future__ import annotations

from jqmaster.cli import show
from jqmaster.cli.options import Client, Options, Replies, asks


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
