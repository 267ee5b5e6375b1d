"""What people read: tables that fit the terminal, times, durations, counts, colour."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STATES = ("queued", "scheduled", "blocked", "retrying", "running", "done", "error", "cancelled", "skipped")
ENDED = ("done", "error", "cancelled", "skipped")
COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36"}
COLOURS |= {"dim": "2", "bold": "1", "inverse": "7"}
OF_STATE = {"queued": "cyan", "scheduled": "blue", "blocked": "magenta", "retrying": "yellow", "running": "green"}
OF_STATE |= {"error": "red", "cancelled": "dim", "skipped": "dim"}
_SPARKS = "▁▂▃▄▅▆▇█"
_LEAST_COLUMN = 6
_USEFUL = 14


def is_terminal(stream: Any = None) -> bool:
    out = sys.stdout if stream is None else stream
    return bool(out.isatty())


def paint(text: str, colour: str | None) -> str:
    """`text` in a colour, on a terminal that wants any."""
    wants_any = is_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if colour and wants_any else text


def screen_width() -> int | None:
    """How wide a line may be; None where nothing must be cut: in files and pipes."""
    if not is_terminal() and not os.environ.get("COLUMNS"):
        return None
    return max(40, shutil.get_terminal_size().columns)


def plain(text: str) -> str:
    """Text that others wrote, without what a terminal would obey."""
    return "".join(one if one.isprintable() else " " if one in "\n\t\r" else "�" for one in text)


def width(text: str) -> int:
    """Columns that a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def cut(text: str, columns: int) -> str:
    """The text's beginning, with an ellipsis when it does not fit."""
    if width(text) <= columns:
        return text
    kept, used = "", 0
    for one in text:
        used += width(one)
        if used > columns - 1:
            break
        kept += one
    return kept + "…" if columns > 0 else ""


def pad(text: str, columns: int, right: bool = False) -> str:
    space = " " * max(0, columns - width(text))
    return space + text if right else text + space


# -- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """`right`: numbers. `shrinks`: is cut when the table is too wide, the larger the sooner. `optional`: goes
    when too little of it would be left."""

    title: str
    right: bool = False
    shrinks: int = 0
    optional: bool = False
    colour: str | None = None


_COLUMN = re.compile(r"(.*?)(>)?(?:~(\d))?(\?)?(?::(\w+))?")


def _column(text: str) -> Column:
    """`TITLE` with marks behind it: `>` right, `~2` shrinks, `?` optional, `:red` a colour."""
    match = _COLUMN.fullmatch(text.strip())
    assert match
    title, right, shrinks, optional, colour = match.groups()
    return Column(title, bool(right), int(shrinks or 0), bool(optional), colour)


class Table:
    """Rows of texts; a cell may be (text, colour). Columns stand in one text with `|` between, see `_column`.

    `empty` is said when there is no row, `more` below the rows.
    """

    def __init__(self, columns: str | Sequence[Column], rows: Iterable[Sequence[Any]] = (), *, empty: str = "") -> None:
        self.columns = list(map(_column, columns.split("|"))) if isinstance(columns, str) else columns
        self.rows = list(rows)
        self.empty, self.more = empty, ""

    def add(self, *cells: Any) -> None:
        self.rows.append(cells)

    def print(self) -> None:
        lines = self.lines(screen_width()) if self.rows else [self.empty] if self.empty else []
        for line in [*lines, paint(self.more, "dim")] if self.more else lines:
            print(line)

    def lines(self, columns: int | None) -> list[str]:
        """The table as lines of at most so many columns. Columns that say nothing in any row are left out."""
        rows: list[list[tuple[str, str | None]]] = [[(column.title, "bold") for column in self.columns]]
        for row in self.rows:
            rows.append(
                [(_text(one), _colour(one) or kind.colour) for one, kind in zip(row, self.columns, strict=True)]
            )
        places = [n for n, column in enumerate(self.columns) if not column.title or any(row[n][0] for row in rows[1:])]
        while True:
            kinds = [self.columns[place] for place in places]
            wanted = [max(width(row[place][0]) for row in rows) for place in places]
            widths = wanted if columns is None else _fitting(kinds, wanted, columns)
            useless = [
                place
                for place, kind, size, full in zip(places, kinds, widths, wanted, strict=True)
                if kind.optional and size < min(full, _USEFUL)
            ]
            if not useless:
                return [_line([row[place] for place in places], kinds, widths) for row in rows]
            places.remove(useless[-1])


def _line(cells: Sequence[tuple[str, str | None]], kinds: Sequence[Column], widths: Sequence[int]) -> str:
    parts = []
    for (cell, colour), kind, size in zip(cells, kinds, widths, strict=True):
        is_end = kind is kinds[-1] and not kind.right
        text = cut(cell, size) if is_end else pad(cut(cell, size), size, kind.right)
        parts.append(paint(text, colour) if text.strip() else text)
    return "  ".join(parts).rstrip()


def _text(cell: Any) -> str:
    value = cell[0] if isinstance(cell, tuple) else cell
    return "" if value is None else plain(str(value))


def _colour(cell: Any) -> str | None:
    return cell[1] if isinstance(cell, tuple) else None


def _fitting(kinds: Sequence[Column], wanted: Sequence[int], columns: int) -> list[int]:
    """Widths at which all fits, those columns narrower first that mind least."""
    widths = list(wanted)
    for level in sorted({kind.shrinks for kind in kinds if kind.shrinks}, reverse=True):
        places = [place for place, kind in enumerate(kinds) if kind.shrinks == level]
        while sum(widths) + 2 * (len(widths) - 1) > columns:
            widest = max(places, key=lambda place: widths[place])
            if widths[widest] <= max(_LEAST_COLUMN, width(kinds[widest].title)):
                break
            widths[widest] -= 1
    return widths


def facts(pairs: Mapping[str, Any]) -> None:
    """Names and values, one below the other; what is None or empty is left out."""
    shown = [(name, _text(value), _colour(value)) for name, value in pairs.items() if _text(value)]
    most = screen_width()
    size = max((len(name) for name, _, _ in shown), default=0)
    for name, value, colour in shown:
        room = 0 if most is None else max(20, most - size - 2)
        lines = textwrap.wrap(value, room, break_on_hyphens=False) if 0 < room < width(value) else [value]
        for number, line in enumerate(lines):
            print(f"{paint(pad(name if not number else '', size), 'dim')}  {paint(line, colour)}")


def state(text: str) -> tuple[str, str | None]:
    """A cell for a state."""
    return text, OF_STATE.get(text)


# -- times and numbers ----------------------------------------------------------------------------


def now_ms() -> int:
    return int(time.time() * 1000)


def duration(seconds: float) -> str:
    """`320 ms`, `4.2 s`, `5 min`, `2 h 5 min`, `3 d`."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms" if seconds else "0 s"
    if seconds < 10 and round(seconds, 1) != round(seconds):
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    for length, unit, lesser, lesser_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= length:
            many, rest = divmod(whole, length)
            rest //= lesser
            return f"{many} {unit}" + (f" {rest} {lesser_unit}" if rest and many < 10 else "")
    return f"{whole} s"


def coarse(seconds: float) -> str:
    """A duration in one unit, near enough: `95 s`, `119 min`, `3 d`."""
    seconds = round(seconds) or seconds
    for length, unit, finer in ((86400, "d", 3600), (3600, "h", 60), (60, "min", 1)):
        if round(seconds / finer) * finer >= 2 * length:
            return f"{round(seconds / length)} {unit}"
    return duration(seconds)


def milliseconds(value: float) -> str:
    return duration(value / 1000)


def when(moment_ms: float | None, now: int | None = None) -> str:
    """`3 s ago`, `in 5 min`; empty for None."""
    if moment_ms is None:
        return ""
    distance = (moment_ms - (now_ms() if now is None else now)) / 1000
    if abs(distance) < 0.5:
        return "now"
    text = coarse(abs(distance))
    return f"in {text}" if distance > 0 else f"{text} ago"


def soon(moment_ms: float, now: int) -> str:
    """`when` of a moment to come, with tenths of its last seconds: `in 0.4 s`."""
    seconds = (moment_ms - now) / 1000
    return when(moment_ms, now) if seconds >= 10 else f"in {max(0.1, seconds):.1f} s"


def both(moment_ms: float | None, now: int | None = None) -> str | None:
    """`2026-11-21 14:20:09, 22 s ago`; None for None."""
    return None if moment_ms is None else f"{clock(moment_ms)}, {when(moment_ms, now)}"


def clock(moment_ms: float) -> str:
    """Local date and time."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment_ms / 1000))


def count(number: float) -> str:
    """`1,234`."""
    return f"{number:,.0f}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 job`, `1,234 jobs`."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def some(number: float) -> str:
    """A count for a table, where 0 would be noise."""
    return "" if not number else count(number)


def per_minute(number: float) -> str:
    if not number:
        return ""
    return count(number) if number >= 10 else f"{number:.1f}"


def bar(share: float, columns: int = 10) -> str:
    """How much of something is used."""
    filled = round(min(1.0, max(0.0, share)) * columns)
    if share > 0 and not filled:
        filled = 1
    return "█" * filled + "░" * (columns - filled)


def spark(values: Sequence[float]) -> str:
    """A line of small bars."""
    most = max(values, default=0)
    if not most:
        return "▁" * len(values)
    return "".join(_SPARKS[min(7, int(value / most * 7.999))] for value in values)


def one_line(text: str | None) -> str:
    """The first line that says something."""
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")
