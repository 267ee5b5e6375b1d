"""`stats`: what happened, by minute, hour or day; `mark` and `marks`: moments that somebody put a name to, such as a
deploy; `changes`: what is different since one."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from jqmaster.cli import show
from jqmaster.cli.options import Client, Options, Replies, asks
from jqmaster.cli.status import Refused

_LENGTHS_S = {"minute": 60, "hour": 3600, "day": 86400}
_DEFAULTS = {"minute": 30, "hour": 24, "day": 30}
_FORMS = {"minute": "%H:%M", "hour": "%m-%d %H:%M", "day": "%Y-%m-%d"}
_COUNTS = ("enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved", "skipped")
_COLUMNS = "IN>|DONE>|FAILED>|LAPSED>|ERROR>|CANCEL>|BACK>|MOVED>|SKIP>|WAIT>|WAIT99>|RUN>|RUN99>"
_NOTHING = "nothing happened"


@asks("""stats
show what happened, by minute, hour or day
FAILED counts attempts that failed and are retried, ERROR jobs that failed for
good. WAIT is from when a job is ready to its start, RUN a successful attempt:
means, and what 99 of 100 do not exceed (by hour and day only).

--by minute|hour|day=hour
--queue NAME  of this queue
--name NAME   of jobs of this name
--last SPAN   how far back (default: 30 minutes, 24 hours or 30 days)
--series      one row for each queue and name, over the whole time
--spark       one line for each count instead of a table
--limit N=50  with --series
""")
def _stats(client: Client, options: Options) -> Replies:
    length_ms = _LENGTHS_S[options.by] * 1000
    now = show.now_ms()
    back_ms = options.last * 1000 if options.last else (_DEFAULTS[options.by] - 1) * length_ms
    begin = int((now - back_ms) // length_ms * length_ms)
    period = {"queue": options.queue, "name": options.name, "from_ms": begin}
    found = client.series(options.by, **period) if options.series else client.stats(options.by, **period)
    if options.series:
        yield found, _series(found, options.limit)
    elif options.spark:
        yield found, partial(_print_sparks, found, range(begin, now + 1, length_ms))
    else:
        yield found, _table(found, options.by)


def _cells(one: dict[str, Any]) -> list[Any]:
    cells: list[Any] = [(show.some(one[name]), "red" if name == "error" else None) for name in _COUNTS]
    for kind in ("wait", "run"):
        told = one.get(kind) or {}
        if told.get("count"):
            cells += [show.milliseconds(told["mean"]), show.milliseconds(told["p99"])]
        else:
            cells += ["", ""]
    return cells


def _table(found: list[dict[str, Any]], by: str) -> show.Table:
    # Days are those of UTC: with a local time of day they would seem to begin in the evening before.
    zone = time.gmtime if by == "day" else time.localtime
    table = show.Table(f"{by.upper()}|{_COLUMNS}", empty=_NOTHING)
    for one in found:
        table.add(time.strftime(_FORMS[by], zone(one["begin_ms"] / 1000)), *_cells(one))
    if found:
        total = {name: sum(one[name] for one in found) for name in _COUNTS}
        text = ", ".join(f"{show.count(total[name])} {name}" for name in _COUNTS if total[name])
        table.more = f"in all: {text or 'nothing'}"
    return table


def _series(found: list[dict[str, Any]], limit: int) -> show.Table:
    # A queue's own row, without a name, is the sum of the rows of its names.
    pairs = [one for one in found if one.get("name")]
    pairs.sort(key=lambda one: -one["enqueued"] - one["done"])
    same = all(one["queue"] == one["name"] for one in pairs)
    table = show.Table(f"QUEUE~1|NAME~1|{_COLUMNS}", empty=_NOTHING)
    for one in pairs[:limit]:
        table.add(one["queue"], "" if same else one["name"], *_cells(one))
    table.more = f"… and {show.count(len(pairs) - limit)} more; --limit" if len(pairs) > limit else ""
    return table


def _print_sparks(found: list[dict[str, Any]], begins: range) -> None:
    by_begin = {one["begin_ms"]: one for one in found}
    columns = max(10, (show.screen_width() or 80) - 26)
    for name in _COUNTS:
        numbers = [by_begin.get(one, {}).get(name, 0) for one in begins[-columns:]]
        if any(numbers):
            colour = "red" if name in ("error", "failed", "lapsed") else "cyan"
            print(f"{name:10} {show.count(sum(numbers)):>9}  {show.paint(show.spark(numbers), colour)}")
    if not found:
        print(_NOTHING)


# -- since when -----------------------------------------------------------------------------------


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
