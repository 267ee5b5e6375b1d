"""`stats`: what happened, by minute, hour or day."""

from __future__ import annotations

import argparse
import time
from typing import Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Parser, choice, command, positive, reach, span
from jqmaster.cli.reach import open_client
from jqmaster.cli.status import EXIT_OK

_LENGTHS_S = {"minute": 60, "hour": 3600, "day": 86400}
_DEFAULTS = {"minute": 30, "hour": 24, "day": 30}
_FORMS = {"minute": "%H:%M", "hour": "%m-%d %H:%M", "day": "%Y-%m-%d"}
_MORE = """\
FAILED counts attempts that failed and are retried, ERROR jobs that failed for
good. WAIT is from when a job is ready to its start, RUN a successful attempt:
means, and what 99 of 100 do not exceed (by hour and day only)."""
_COUNTS = ("enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved")


def add(commands: Any) -> None:
    parser = command(commands, "stats", _stats, "show what happened, by minute, hour or day", _MORE)
    parser.option(
        "--by",
        type=choice(*_LENGTHS_S),
        default="hour",
        metavar="minute|hour|day",
        help="(default: %(default)s)",
    )
    parser.option("--queue", metavar="NAME", help="of this queue")
    parser.option("--name", metavar="NAME", help="of jobs of this name")
    parser.option("--last", type=span, metavar="TIME", help="how far back (default: 30 minutes, 24 hours or 30 days)")
    parser.option("--series", action="store_true", help="one row for each queue and name, over the whole time")
    parser.option("--spark", action="store_true", help="one line for each count instead of a table")
    parser.option("--limit", type=positive, default=50, metavar="N", help="with --series (default: %(default)s)")
    reach(parser)


def _stats(options: argparse.Namespace, _parser: Parser) -> int:
    length_ms = _LENGTHS_S[options.by] * 1000
    now = show.now_ms()
    back_ms = options.last * 1000 if options.last else (_DEFAULTS[options.by] - 1) * length_ms
    begin = int((now - back_ms) // length_ms * length_ms)
    period = {"queue": options.queue, "name": options.name, "from_ms": begin}
    with open_client(options) as client:
        found = client.series(options.by, **period) if options.series else client.stats(options.by, **period)
    if options.json:
        values.print_lines(found)
    elif options.series:
        _print_series(found, options.limit)
    elif options.spark:
        _print_sparks(found, begin, length_ms, now)
    else:
        _print_table(found, options.by)
    return EXIT_OK


def _cells(one: dict[str, Any]) -> list[Any]:
    cells: list[Any] = [(show.some(one[name]), "red" if name == "error" else None) for name in _COUNTS]
    for kind in ("wait", "run"):
        told = one.get(kind) or {}
        if told.get("count"):
            cells += [show.milliseconds(told["mean"]), show.milliseconds(told["p99"])]
        else:
            cells += ["", ""]
    return cells


def _columns(*first: show.Column) -> list[show.Column]:
    titles = (
        "IN",
        "DONE",
        "FAILED",
        "LAPSED",
        "ERROR",
        "CANCEL",
        "BACK",
        "MOVED",
        "WAIT",
        "WAIT99",
        "RUN",
        "RUN99",
    )
    return [*first, *(show.Column(title, right=True) for title in titles)]


def _print_table(found: list[dict[str, Any]], by: str) -> None:
    # Days are those of UTC: with a local time of day they would seem to begin in the evening before.
    zone = time.gmtime if by == "day" else time.localtime
    table = show.Table(_columns(show.Column(by.upper())))
    for one in found:
        table.add(time.strftime(_FORMS[by], zone(one["begin_ms"] / 1000)), *_cells(one))
    table.print("nothing happened")
    if found:
        total = {name: sum(one[name] for one in found) for name in _COUNTS}
        text = ", ".join(f"{show.count(total[name])} {name}" for name in _COUNTS if total[name])
        print(show.paint(f"in all: {text or 'nothing'}", "dim"))


def _print_series(found: list[dict[str, Any]], limit: int) -> None:
    # A queue's own row, without a name, is the sum of the rows of its names.
    pairs = [one for one in found if one.get("name")]
    pairs.sort(key=lambda one: -one["enqueued"] - one["done"])
    same = all(one["queue"] == one["name"] for one in pairs)
    table = show.Table(_columns(show.Column("QUEUE", shrinks=1), show.Column("NAME", shrinks=1)))
    for one in pairs[:limit]:
        table.add(one["queue"], "" if same else one["name"], *_cells(one))
    table.print("nothing happened")
    if len(pairs) > limit:
        print(show.paint(f"… and {show.count(len(pairs) - limit)} more; --limit", "dim"))


def _print_sparks(found: list[dict[str, Any]], begin: int, length_ms: int, now: int) -> None:
    by_begin = {one["begin_ms"]: one for one in found}
    begins = range(begin, now + 1, length_ms)
    columns = max(10, (show.screen_width() or 80) - 26)
    shown = list(begins)[-columns:]
    for name in _COUNTS:
        numbers = [by_begin.get(one, {}).get(name, 0) for one in shown]
        if any(numbers):
            colour = "red" if name in ("error", "failed", "lapsed") else "cyan"
            print(f"{name:10} {show.count(sum(numbers)):>9}  {show.paint(show.spark(numbers), colour)}")
    if not found:
        print("nothing happened")
