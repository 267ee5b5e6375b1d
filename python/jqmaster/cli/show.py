"""What people read: tables that fit the terminal, times, durations, counts, colour."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

STATES = ("queued", "scheduled", "blocked", "retrying", "running", "done", "error", "cancelled")
COLOURS = {
    "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36", "dim": "2",
    "bold": "1", "inverse": "7",
}  # fmt: skip
OF_STATE = {
    "queued": "cyan", "scheduled": "blue", "blocked": "magenta", "retrying": "yellow", "running": "green",
    "error": "red", "cancelled": "dim",
}  # fmt: skip
_SPARKS = "▁▂▃▄▅▆▇█"
_LEAST_COLUMN = 6
_USEFUL = 14


def is_terminal(stream: Any = None) -> bool:
    out = sys.stdout if stream is None else stream
    return bool(out.isatty())


def coloured(stream: Any = None) -> bool:
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str | None) -> str:
    """`text` in a colour, on a terminal that wants any."""
    if not colour or not coloured():
        return text
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"


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


@dataclass
class Column:
    """`right`: numbers. `shrinks`: is cut when the table is too wide, the larger the sooner. `optional`: goes
    when too little of it would be left."""

    title: str
    right: bool = False
    shrinks: int = 0
    colour: str | None = None
    optional: bool = False


@dataclass
class Table:
    """Rows of texts; a cell may be (text, colour)."""

    columns: Sequence[Column]
    rows: list[Sequence[Any]] = field(default_factory=list)

    def add(self, *cells: Any) -> None:
        self.rows.append(cells)

    def print(self, empty: str = "") -> None:
        if not self.rows:
            if empty:
                print(empty)
            return
        print("\n".join(self.lines(screen_width())))

    def lines(self, columns: int | None, *, head: bool = True) -> list[str]:
        """The table as lines of at most so many columns. Columns that say nothing in any row are left out."""
        shown = [
            number for number, column in enumerate(self.columns)
            if column.title == "" or any(_text(row[number]) for row in self.rows)
        ]  # fmt: skip
        while True:
            cells = [[_text(row[number]) for number in shown] for row in self.rows]
            kinds = [self.columns[number] for number in shown]
            widths = [
                max([width(kind.title), *(width(row[place]) for row in cells)]) for place, kind in enumerate(kinds)
            ]
            natural = list(widths)
            if columns is not None:
                _fit(kinds, widths, columns)
            useless = [
                number for number, kind, size, wanted in zip(shown, kinds, widths, natural, strict=True)
                if kind.optional and size < min(wanted, _USEFUL)
            ]  # fmt: skip
            if not useless:
                break
            shown.remove(useless[-1])
        lines = [self._line([kind.title for kind in kinds], ["bold"] * len(kinds), kinds, widths)] if head else []
        for row, original in zip(cells, self.rows, strict=True):
            colours = [_colour(original[number]) or self.columns[number].colour for number in shown]
            lines.append(self._line(row, colours, kinds, widths))
        return lines

    def _line(
        self,
        cells: Sequence[str],
        colours: Sequence[str | None],
        kinds: Sequence[Column],
        widths: Sequence[int],
    ) -> str:
        parts = []
        last = len(cells) - 1
        for place, (cell, colour) in enumerate(zip(cells, colours, strict=True)):
            text = cut(cell, widths[place])
            padded = text if place == last and not kinds[place].right else pad(text, widths[place], kinds[place].right)
            parts.append(paint(padded, colour) if text.strip() else padded)
        return "  ".join(parts).rstrip()


def _text(cell: Any) -> str:
    value = cell[0] if isinstance(cell, tuple) else cell
    return "" if value is None else plain(str(value))


def _colour(cell: Any) -> str | None:
    return cell[1] if isinstance(cell, tuple) else None


def _fit(kinds: Sequence[Column], widths: list[int], columns: int) -> None:
    """Make columns narrower, those first that mind least, until all fit."""
    for level in sorted({kind.shrinks for kind in kinds if kind.shrinks}, reverse=True):
        while sum(widths) + 2 * (len(widths) - 1) > columns:
            places = [place for place, kind in enumerate(kinds) if kind.shrinks == level]
            widest = max(places, key=lambda place: widths[place])
            if widths[widest] <= max(_LEAST_COLUMN, width(kinds[widest].title)):
                break
            widths[widest] -= 1


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one below the other; what is None or empty is left out."""
    shown = [(name, _text(value), _colour(value)) for name, value in pairs if _text(value)]
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
    for length, unit, lesser, lesser_unit in (
        (86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"),
    ):  # fmt: skip
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


def size(number: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


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
