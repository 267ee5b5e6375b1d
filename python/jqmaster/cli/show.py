"""What people read: tables, facts, times, durations, counts, laid out by rich; into files and pipes nothing is cut."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, get_args

from jqmaster.cli import values
from jqmaster.cli.kinds import State
from jqmaster.manifest.fields import FIELDS

if TYPE_CHECKING:
    from rich.table import Table as RichTable

STATES: tuple[str, ...] = get_args(State)
ENDED = ("done", "error", "cancelled", "skipped")
OF_STATE = {"queued": "cyan", "scheduled": "blue", "blocked": "magenta", "retrying": "yellow", "running": "green"}
OF_STATE |= {"error": "red", "cancelled": "dim", "skipped": "dim"}
OF_STATE |= {"ready": "green", "pulling": "green", "full": "cyan", "busy": "yellow", "quiet": "yellow"}  # of workers
OF_STATE |= {"unreachable": "red", "gone": "red"}
_SECONDS = {"every", "period", *(field.name for field in FIELDS if field.type == "seconds")}
_TIMES = {"mean", "p50", "p90", "p99", "p999"}  # of statistics, in ms
_SPARKS = "▁▂▃▄▅▆▇█"
_PIPE = 100_000  # columns of a pipe: nothing is cut there
_MOMENTS_FROM_MS = 1e11  # a number that is more is a moment (from 1973 on); a field in ms that is less, a duration

_FIRST = ("id", "name", "queue", "status")

Cell = Any
"""Text, a value, or one of these with its style."""
Document = Mapping[str, Any]


def plain(text: str) -> str:
    """Text that others wrote, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " if letter in "\n\t\r" else "�" for letter in text)


def text(field: str, cell: Cell, moment: Callable[[float], str | None]) -> str:
    """A document's field as people read it; "" for what says nothing: nil, 0, false, empty."""
    value = cell[0] if isinstance(cell, tuple) else cell
    if not value:
        return ""
    match value:
        case True:
            return "yes"
        case _ if field in ("by", "pid"):  # a number there is no count
            return plain(value if isinstance(value, str) else values.as_json(value))
        case str():
            return plain(value)
        case int() | float() if field in _SECONDS:
            return duration(value)
        case int() | float() if field.endswith("_ms") or field in _TIMES:
            return moment(value) or "" if _is_moment(value) else milliseconds(value)
        case int() if _is_moment(value):
            return moment(value) or ""
        case int():
            return count(value)
        case float():
            return f"{value:,g}"
        case {"limit": limit, "period": period} if len(value) == 2:
            return f"{count(limit)} in {duration(period)}"
        case [*some] if field == "counts":
            return spark(some) if any(some) else ""
        case [*some] if all(isinstance(item, str) for item in some):
            return plain(", ".join(some))
        case [*some] if all(isinstance(item, int) and _is_moment(item) for item in some):
            return "; ".join(text(field, item, moment) for item in some)
        case [*some] if all(isinstance(item, list) and len(item) < 4 for item in some):
            return "; ".join(" ".join(text(field, part, moment) for part in item) for item in some)
    return plain(values.as_json(value))


def _brief(field: str, cell: Cell, moment: Callable[[float], str | None]) -> str:
    return text(field, one_line(cell) if isinstance(cell, str) else cell, moment)


def _is_moment(value: float) -> bool:
    return value > _MOMENTS_FROM_MS


def _style(field: str, cell: Cell) -> str | None:
    return cell[1] if isinstance(cell, tuple) else OF_STATE.get(cell) if field in ("status", "state") else None


def is_cut() -> bool:
    """Whether lines have to fit a width."""
    return sys.stdout.isatty() or bool(os.environ.get("COLUMNS"))


def say(renderable: Any) -> None:
    """Print what rich draws, without the spaces behind it."""
    from rich.console import Console

    out = Console(width=None if is_cut() else _PIPE, highlight=False, markup=False, emoji=False)
    with out.capture() as captured:
        out.print(renderable)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


class Table:
    """Documents under columns, which stand in one text with `|` between: `TITLE=field`, behind the title `>` for
    numbers and `~` for what may be cut, behind the field `:red` for a style. A field may be one of a document within,
    `job.name`; of texts the first line is shown. Without columns there is one for each field. A column that says
    nothing in any row is left out.

    `empty` is said when there is no row, `more` below the rows.
    """

    def __init__(self, columns: str, documents: Iterable[Document], *, empty: str = "none", more: str = "") -> None:
        rows = list(documents)
        if not columns:
            names = dict.fromkeys(("by", *(name for row in rows for name in row)))
            cut = {name: "" if name in _FIRST else "~" for name in names}
            columns = "|".join(f"{_title(name).upper()}{cut[name]}={name}" for name in names)
        now = now_ms()
        self.columns: list[str] = []
        self.cells: list[list[tuple[str, str]]] = [[] for _ in rows]
        for column in columns.split("|"):
            title, _, rest = column.strip().partition("=")
            field, _, style = rest.partition(":")
            *within, name = field.split(".")
            values = [reduce(lambda found, key: found.get(key) or {}, within, row).get(name) for row in rows]
            cells = [_brief(name, value, lambda moment: when(moment, now)) for value in values]
            if any(cells):
                self.columns.append(title)
                for line, value, cell in zip(self.cells, values, cells, strict=True):
                    line.append((cell, _style(field, value) or style))
        self.empty, self.more = empty, more

    def rich(self, most: int | None = None) -> RichTable:
        """`most`: lines of it, with its head."""
        from rich.table import Table as RichTable
        from rich.text import Text

        made = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for title in self.columns:
            is_right = ">" in title
            made.add_column(title.rstrip(">~"), justify="right" if is_right else "left", no_wrap="~" not in title)
        lines = self.cells if most is None or len(self.cells) < most else self.cells[: max(0, most - 2)]
        for line in lines:
            made.add_row(*(Text(cell, style, no_wrap=True, overflow="ellipsis") for cell, style in line))
        if len(lines) < len(self.cells):
            made.add_row(Text(f"… {len(self.cells) - len(lines)} more", "dim"))
        return made

    def print(self) -> None:
        if self.cells:
            say(self.rich())
        print(self.more, end="\n" * bool(self.more)) if self.cells else print(self.empty)


def facts(document: Document) -> None:
    """Names and values, one below the other; what says nothing is left out. Lists of documents come as tables behind
    the rest."""
    from rich.table import Table as RichTable
    from rich.text import Text

    now = now_ms()
    tables = {
        name: cell for name, cell in document.items() if isinstance(cell, list) and cell and isinstance(cell[0], dict)
    }
    made = RichTable.grid(padding=(0, 2, 0, 0))
    made.add_column(no_wrap=True, style="dim")
    doubled = {f"{name}_ms" for name in document}  # such as `next`, all the moments, and `next_ms`, the first
    doubled |= {"tz"} if "timezone" in document else set()  # the rule of what has a name
    for name in sorted(document.keys() - tables.keys() - doubled, key=lambda name: (name not in _FIRST, name)):
        if shown := text(name, document[name], lambda moment: both(moment, now)):
            style = _style(name, document[name]) or ""
            made.add_row(_title(name), Text(shown, style, overflow="fold"))
    if made.row_count:
        say(made)
    for name, rows in tables.items():
        print(f"\n{_title(name)}:")
        Table("", rows).print()


def _title(name: str) -> str:
    return name.removesuffix("_ms").replace("_", " ")


# -- times and numbers ----------------------------------------------------------------------------


def now_ms() -> int:
    return int(time.time() * 1000)


def duration(seconds: float, *, is_coarse: bool = False) -> str:
    """`320 ms`, `4.2 s`, `5 min`, `2 h 5 min`, `3 d`. `is_coarse`: in one unit, near enough."""
    if seconds < 0:
        return f"-{duration(-seconds)}"
    if is_coarse:
        seconds = round(seconds) or seconds
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms" if seconds else "0 s"
    if seconds < 10 and round(seconds, 1) != round(seconds):
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    for length, unit, lesser, lesser_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if is_coarse and round(whole / lesser) * lesser >= 2 * length:
            return f"{round(whole / length)} {unit}"
        if whole >= length and not is_coarse:
            many, rest = divmod(whole, length)
            rest //= lesser
            return f"{many} {unit}" + (f" {rest} {lesser_unit}" if rest and many < 10 else "")
    return f"{whole} s"


def milliseconds(value: float) -> str:
    return duration(value / 1000)


def when(moment_ms: float | None, now: int | None = None) -> str:
    """`3 s ago`, `in 5 min`; empty for None."""
    if moment_ms is None:
        return ""
    distance = (moment_ms - (now_ms() if now is None else now)) / 1000
    if abs(distance) < 0.5:
        return "now"
    near = duration(abs(distance), is_coarse=True)
    return f"in {near}" if distance > 0 else f"{near} ago"


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


def spark(values: Sequence[float]) -> str:
    """A line of small bars."""
    most = max(values, default=0)
    return "".join(_SPARKS[min(7, int(value / most * 7.999))] if most else _SPARKS[0] for value in values)


def one_line(text: str | None) -> str:
    """The first line that says something."""
    return next((line.strip() for line in (text or "").splitlines() if line.strip()), "")
