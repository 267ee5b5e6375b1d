"""`top`: queues, workers, limits and failures on one screen, live."""

from __future__ import annotations

import sys
import time
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

View = Literal["queues", "workers", "limits", "failures"]
Order = Literal["waiting", "running", "rate", "errors", "name"]
_WIDE = 110  # columns for all that is known of queues
_RARELY_S = 5.0  # what changes slowly, or costs more, is looked at so often
_COUNTED = ("enqueued", "done", "failed")
_LEVELS = {"ok": "green", "warning": "yellow", "problem": "red"}
_LOW = 16  # lines, below which there is no room for the verdict


def top(
    view: Annotated[View | None, option("only this, on all of the screen")] = None,
    /,
    *,
    every: Annotated[Span, option("refresh interval in s")] = 1,
    sort: Annotated[Order, option("sort queues by this")] = "waiting",
    once: Annotated[bool, option("print once, for logs and pipes")] = False,
) -> Coded:
    """Watch queues, workers, limits and failures, live, until Ctrl-C."""
    watch = Watch(connect(), sort)
    if not (as_json() or once) and not sys.stdout.isatty():
        raise Refused("top needs a terminal; --once prints it once", "INVALID")
    watch.look()  # what cannot be reached is said before the screen is taken
    screen = Screen(watch, str(current.get().place()), view)
    if as_json() or once:
        yield watch.found, lambda: show.say(screen.picture(None, 120))
    else:
        screen.run(every)
    return EXIT_OK


class Watch:
    """What is looked at, and in which order it is shown."""

    def __init__(self, client: Client, order: Order) -> None:
        self._order = order
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
        by = orders.get(self._order, lambda queue: -queue[self._order])
        return sorted(self.found["queues"], key=lambda queue: (by(queue), queue["name"]))


class Screen:
    """What is drawn of it."""

    def __init__(self, watch: Watch, where: str, view: View | None) -> None:
        self._watch, self._where, self._view, self._trouble = watch, where, view, ""

    def run(self, every_s: float) -> None:
        """Until Ctrl-C."""
        from rich.console import Console
        from rich.live import Live

        console = Console(highlight=False, markup=False, emoji=False)
        try:
            with Live(console=console, screen=True, auto_refresh=False) as live:
                while True:
                    live.update(self.picture(console.height, console.width), refresh=True)
                    time.sleep(every_s)
                    self._look()
        except KeyboardInterrupt:
            return

    def _look(self) -> None:
        try:
            self._watch.look()
        except JQError as error:
            # It comes back when the server does; the last picture stays.
            self._trouble = show.one_line(error.message)
        else:
            self._trouble = ""

    def picture(self, height: int | None, width: int) -> RenderableType:
        """A head, then tables that share what room there is."""
        from rich.console import Group

        watch = self._watch
        tables = {
            "queues": queues.table(watch.queues(), is_narrow=width < _WIDE),
            "workers": workers.table(watch.found["workers"]),
            "limits": limits.table(watch.found["limits"]),
            "failures": failures.table(watch.found["failures"]),
        }
        shown = [self._view] if self._view else [name for name in tables if tables[name].cells]
        chosen = [tables[name] for name in shown]
        wanted = [len(one.cells) + 1 for one in chosen]
        head = self._head()
        if height is not None and height < _LOW:
            del head[1]
        shares = _shares(wanted, None if height is None else height - len(head) - len(chosen))
        return Group(*head, *(part for one, most in zip(chosen, shares, strict=True) for part in ("", one.rich(most))))

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
