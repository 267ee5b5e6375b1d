"""`top`: queues, workers, limits and failures on one screen, live."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

from jqmaster.cli import lists, show
from jqmaster.cli.kinds import Span, option
from jqmaster.cli.reach import connect, current
from jqmaster.cli.status import Refused
from jqmaster.engine import alerts
from jqmaster.errors import JQError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from jqmaster.cli.clients import Client

_LEVELS = {"ok": "green", "warning": "yellow", "problem": "red"}


def top(*, every: Annotated[Span, option("refresh interval in s")] = 2) -> int:
    """Watch queues, workers, limits and failures, live, until Ctrl-C.

    The queues with the most jobs come first. Once, for logs and pipes: jqmaster queues, and so on.
    """
    from rich.console import Console
    from rich.live import Live

    if not sys.stdout.isatty():
        raise Refused("top needs a terminal", "INVALID")
    client, console = connect(), Console(highlight=False, markup=False, emoji=False)
    head, tables = look(client)  # what cannot be reached is said before the screen is taken
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                live.update(_picture(head, tables, console.height), refresh=True)
                time.sleep(every)
                try:
                    head, tables = look(client)
                except JQError as error:  # it comes back when the server does; the last tables stay
                    head = [_line(f"cannot look: {show.one_line(error.message)}", "red")]
    except KeyboardInterrupt:
        return 0


def look(client: Client) -> tuple[list[Text], list[show.Table]]:
    """Raises what the client does."""
    queues = sorted(client.each("queues", minutes=lists.MINUTES), key=lambda queue: (-queue["queued"], queue["name"]))
    verdict = alerts.verdict(client.ask(lambda engine: alerts.every(engine)))
    totals = {state: sum(queue[state] for queue in queues) for state in show.STATES}
    counts = "  ".join(f"{show.count(number)} {state}" for state, number in totals.items() if number)
    head = [
        _line(f"{time.strftime('%H:%M:%S')}  JQ {current.get()}"),
        _line(show.plain(verdict["text"]), _LEVELS[verdict["level"]]),
        _line(counts or "no jobs"),
    ]
    groups = sorted(client.each("failures"), key=lambda group: -group["last_ms"])
    tables = [
        lists.table("queues", queues),
        lists.table("workers", client.each("workers")),
        lists.table("constraints", client.each("constraints", busiest=1)),
        lists.table("failures", groups),
    ]
    return head, [table for table in tables if table.cells]


def _picture(head: list[Text], tables: list[show.Table], height: int) -> RenderableType:
    """Tables share what room there is below the head: all they want if that fits, else the large ones give way."""
    from rich.console import Group

    shares = [len(table.cells) + 1 for table in tables]
    while sum(shares) > max(height - len(head) - len(tables), 3 * len(shares)):
        shares[shares.index(max(shares))] -= 1
    return Group(*head, *(part for table, most in zip(tables, shares, strict=True) for part in ("", table.rich(most))))


def _line(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style, no_wrap=True, overflow="ellipsis")
