"""`top`: queues, workers, limits and failures on one screen, live."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from jqmaster.cli import failures, limits, queues, show, workers
from jqmaster.cli.kinds import Span, option
from jqmaster.cli.reach import as_json, connect, current
from jqmaster.cli.status import EXIT_OK, Coded, Refused
from jqmaster.engine import alerts
from jqmaster.errors import JQError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from jqmaster.cli.clients import Client

_WIDE = 110  # columns for all that is known of queues
_ORDERS = ("waiting", "running", "rate", "errors", "name")
_VIEWS = ("all", "queues", "workers", "limits", "failures")
_RARELY_S = 5.0  # what changes slowly, or costs more, is looked at so often
_COUNTED = ("enqueued", "done", "failed")
_LEVELS = {"ok": "green", "warning": "yellow", "problem": "red"}
_LOW = 16  # lines, below which there is no room for the verdict


def top(
    *,
    every: Annotated[Span, option("refresh interval in s")] = 1,
    sort: Annotated[Literal["waiting", "running", "rate", "errors", "name"], option("sort queues by this")] = "waiting",
    once: Annotated[bool, option("print once, for logs and pipes")] = False,
) -> Coded:
    """Watch queues, workers, limits and failures, live.

    Keys: v gives one table the screen, s or ← → sorts by something else, r turns the order round, p stands still, + and
    - change how often it looks, q quits.
    """
    watch = Watch(connect(), sort)
    if not (as_json() or once) and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("top needs a terminal; --once prints it once", "INVALID")
    watch.look()  # what cannot be reached is said before the screen is taken
    screen = Screen(watch, str(current.get().place()), every)
    if as_json() or once:
        yield watch.found, lambda: show.say(screen.picture(None, 120))
        return EXIT_OK
    return screen.run()


class Watch:
    """What is looked at, and in which order it is shown."""

    def __init__(self, client: Client, order: str) -> None:
        self.order, self.is_reversed = order, False
        self.found: dict[str, Any] = {}
        self._client = client
        self._rarely_at = float("-inf")

    def look(self) -> None:
        """Raises what the client does."""
        client, now = self._client, show.now_ms()
        if time.monotonic() - self._rarely_at > _RARELY_S:
            groups = sorted(client.each("failures"), key=lambda group: -group["last_ms"])
            told = client.ask(lambda engine: alerts.every(engine.alerts))
            limits_ = list(client.each("constraints", busiest=1))
            self.found |= {"verdict": alerts.verdict(told), "alerts": told, "limits": limits_, "failures": groups}
            self._rarely_at = time.monotonic()
        minutes = client.call("stats", "minute", from_ms=(now // 60_000 - 59) * 60_000, brief=True)
        by_begin = {one["begin_ms"] // 60_000: one for one in minutes}
        recent = [by_begin.get(now // 60_000 - back, {}) for back in range(59, -1, -1)]
        passed = 1 + now % 60_000 / 60_000  # of the last minute and what there is of this one
        failed = ("failed", "error", "lapsed")
        rates = [sum(one.get(name, 0) for one in recent[-2:] for name in names) / passed
                 for names in (("enqueued",), ("done", "moved"), failed)]  # fmt: skip
        found = queues.standings(client)
        self.found |= {
            "now_ms": now,
            "queues": found,
            "workers": workers.every(client),
            "totals": {state: sum(queue[state] for queue in found) for state in show.STATES},
            "per_minute": dict(zip(_COUNTED, rates, strict=True)),
            "done": [one.get("done", 0) for one in recent],
        }

    def queues(self) -> list[dict[str, Any]]:
        """In the order that is wanted."""
        orders: dict[str, Any] = {
            "rate": lambda queue: -queue["in"] - queue["out"],
            "errors": lambda queue: -queue["error"],
            "name": lambda _queue: 0,
        }
        by = orders.get(self.order, lambda queue: -queue[self.order])
        return sorted(self.found["queues"], key=lambda queue: (by(queue), queue["name"]), reverse=self.is_reversed)


class Screen:
    """The terminal while `top` runs."""

    def __init__(self, watch: Watch, where: str, every_s: float) -> None:
        self._watch, self._where, self._every_s = watch, where, every_s
        self._view, self._paused, self._trouble = "all", False, ""

    def run(self) -> int:
        from rich.console import Console
        from rich.live import Live

        console = Console(highlight=False, markup=False, emoji=False)
        with _keys() as key, Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                due = time.monotonic() + self._every_s
                while (left := due - time.monotonic()) > 0:
                    live.update(self.picture(console.height, console.width), refresh=True)
                    pressed = key(left)
                    if pressed in ("q", "Q", "\x1b", "\x03"):
                        return EXIT_OK
                    self._obey(pressed)
                if not self._paused:
                    self._look()

    def _look(self) -> None:
        try:
            self._watch.look()
        except JQError as error:
            # It comes back when the server does; the last picture stays.
            self._trouble = show.one_line(error.message)
        else:
            self._trouble = ""

    def _obey(self, key: str) -> None:
        watch = self._watch
        if key in ("s", "\x1b[C", "\x1b[D"):
            watch.order = _ORDERS[(_ORDERS.index(watch.order) + (-1 if key == "\x1b[D" else 1)) % len(_ORDERS)]
        elif key == "v":
            self._view = _VIEWS[(_VIEWS.index(self._view) + 1) % len(_VIEWS)]
        elif key == "r":
            watch.is_reversed = not watch.is_reversed
        elif key == "p":
            self._paused = not self._paused
        elif key in ("+", "-"):
            self._every_s = min(60.0, max(0.2, self._every_s * (0.5 if key == "+" else 2)))

    def picture(self, height: int | None, width: int) -> RenderableType:
        """A head, then tables that share what room there is; with a height also a foot."""
        from rich.console import Group
        from rich.text import Text

        watch = self._watch
        tables = {
            "queues": queues.table(watch.queues(), is_narrow=width < _WIDE),
            "workers": workers.table(watch.found["workers"]),
            "limits": limits.table(watch.found["limits"]),
            "failures": failures.table(watch.found["failures"]),
        }
        chosen = [one for name, one in tables.items() if name == self._view or (self._view == "all" and one.cells)]
        wanted = [len(one.cells) + 1 for one in chosen]
        if height is None:
            return Group(*self._head(), *(part for one in chosen for part in ("", one.rich())))
        head = self._head()
        if height < _LOW:
            del head[1]
        room = height - len(head) - 1 - len(chosen)
        shares = _shares(wanted, room)
        parts = [part for one, most in zip(chosen, shares, strict=True) for part in ("", one.rich(most))]
        order = f"{watch.order}{' (turned)' if watch.is_reversed else ''}"
        keys = f"q quit  v view: {self._view}  s sort: {order}  r turn  p pause  +/- {show.duration(self._every_s)}"
        foot = Text(f"{'paused, p goes on  ' * self._paused}{keys}".ljust(width), "reverse", no_wrap=True)
        foot.truncate(width)
        return Group(*head, *parts, *[""] * (room - sum(shares)), foot)

    def _head(self) -> list[Any]:
        from rich.text import Text

        found = self._watch.found
        clock = time.strftime("%H:%M:%S", time.localtime(found["now_ms"] / 1000))
        first = Text(f"{clock}  JQ {self._where}", no_wrap=True, overflow="ellipsis")
        if self._trouble:
            first = Text(f"cannot look: {self._trouble}", "red", no_wrap=True, overflow="ellipsis")
        counts = Text(no_wrap=True, overflow="ellipsis")
        for state, number in found["totals"].items():
            if number or state in ("queued", "running", "done", "error"):
                counts.append(show.count(number), show.OF_STATE.get(state, "")).append(f" {state}  ")
        came, went, failed = (f"{found['per_minute'][name]:,.1f}" for name in _COUNTED)
        rates = f"a minute: in {came}  done {went}  failed {failed}  {show.spark(found['done'][-30:])}"
        verdict = found["verdict"]
        told = Text(show.plain(verdict["text"]), _LEVELS[verdict["level"]], no_wrap=True, overflow="ellipsis")
        return [first, told, counts, Text(rates, no_wrap=True, overflow="crop")]


def _shares(wanted: list[int], room: int | None) -> list[int]:
    """How many lines each table gets: all it wants if that fits, else the large ones give way."""
    shares = list(wanted)
    while room is not None and sum(shares) > max(room, 3 * len(shares)):
        shares[shares.index(max(shares))] -= 1
    return shares


@contextlib.contextmanager
def _keys() -> Iterator[Any]:
    """A terminal that gives each key at once; how the next is asked for within so many seconds."""
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)

    def leave(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    def key(timeout_s: float) -> str:
        if not select.select([handle], [], [], timeout_s)[0]:
            return ""
        pressed = os.read(handle, 1).decode("latin-1")
        if pressed == "\x1b" and select.select([handle], [], [], 0)[0]:
            pressed += os.read(handle, 2).decode("latin-1")
        return pressed or "q"

    # A terminal that was closed, or a kill, must not leave the screen as it is.
    handlers = [(number, signal.signal(number, leave)) for number in (signal.SIGTERM, signal.SIGHUP)]
    try:
        tty.setcbreak(handle)
        yield key
    finally:
        termios.tcsetattr(handle, termios.TCSANOW, before)
        for number, handler in handlers:
            signal.signal(number, handler)
