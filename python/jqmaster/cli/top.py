"""`top`: queues, workers, limits and failures on one screen, live. Few calls for each look, and rates from the
difference of two."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from jqmaster.cli import failures, limits, queues, show, workers
from jqmaster.cli.options import Client, Coded, Options, asks
from jqmaster.cli.queues import WAITING, rates, standings
from jqmaster.cli.reach import place
from jqmaster.cli.status import EXIT_OK, Refused
from jqmaster.errors import JQError

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_LEAST_ROWS = 8
_WIDE = 110  # columns for all that is known of queues
ORDERS = ("waiting", "running", "rate", "errors", "name")
_RARELY_S = 5.0  # what changes slowly, or costs more, is looked at so often
_SMOOTH = 5  # looks over which rates are taken
_TRACE = 400
_COUNTED = ("enqueued", "done", "failed")


@asks(f"""top
watch queues, workers and failures, live
Keys: s or ← → sorts by something else, r turns the order round, p stands
still, + and - change how often it looks, q quits.

--every SPAN=1  look so often (default: once a second)
--sort {"|".join(ORDERS)}=waiting
--once          print it once, for logs and pipes
""")
def _top(client: Client, options: Options) -> Coded:
    watch = Watch(client, sort=options.sort)
    if not (options.json or options.once) and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("top needs a terminal; --once prints it once", "INVALID")
    watch.look()  # what cannot be reached is said before the screen is taken
    screen = Screen(str(place(options)), options.every)
    if not (options.json or options.once):
        return screen.run(client, watch)
    time.sleep(options.every)  # rates are of what happens between two looks
    snapshot = watch.look()
    yield snapshot.document(), lambda: print("\n".join(screen.lines(snapshot, watch, 10_000)))
    return EXIT_OK


class Screen:
    """The terminal while `top` runs."""

    def __init__(self, where: str, every_s: float) -> None:
        self._where = where
        self._every_s = every_s
        self._paused = False
        self._trouble = ""

    def run(self, client: Client, watch: Watch) -> int:
        with _raw_terminal():
            snapshot = watch.look()
            while True:
                self._draw(snapshot, watch)
                due = time.monotonic() + self._every_s
                while (left := due - time.monotonic()) > 0:
                    key = _key(left)
                    if key in ("q", "Q", "\x1b", "\x03"):
                        return EXIT_OK
                    if key:
                        self._obey(key, watch)
                        snapshot = watch.sorted(snapshot)
                        self._draw(snapshot, watch)
                if not self._paused:
                    snapshot = self._look(watch, snapshot)

    def _look(self, watch: Watch, before: Snapshot) -> Snapshot:
        try:
            found = watch.look()
        except JQError as error:
            # It comes back when the server does; the last picture stays.
            self._trouble = show.one_line(error.message)
            return before
        self._trouble = ""
        return found

    def _obey(self, key: str, watch: Watch) -> None:
        if key in ("s", "\x1b[C"):
            watch.next_order(1)
        elif key == "\x1b[D":
            watch.next_order(-1)
        elif key == "r":
            watch.is_reversed = not watch.is_reversed
        elif key == "p":
            self._paused = not self._paused
        elif key == "+":
            self._every_s = max(0.2, self._every_s / 2)
        elif key == "-":
            self._every_s = min(60.0, self._every_s * 2)

    def _draw(self, snapshot: Snapshot, watch: Watch) -> None:
        rows = shutil.get_terminal_size().lines
        lines = self.lines(snapshot, watch, max(_LEAST_ROWS, rows))[:rows]
        # Each line is written over the old one and its rest cleared: no flicker.
        sys.stdout.write("\x1b[H" + "\x1b[K\n".join(lines) + "\x1b[K\x1b[J")
        sys.stdout.flush()

    def lines(self, snapshot: Snapshot, watch: Watch, rows: int) -> list[str]:
        """The picture: a head, then parts that share what room there is."""
        columns = show.screen_width() or 120
        lines = self._head(snapshot, watch, columns)
        parts = self._parts(snapshot, columns)
        shares = _shares([len(part) for part in parts], rows - len(lines) - 1 - len(parts))
        for part, room in zip(parts, shares, strict=True):
            lines.append("")
            lines += part[:room]
            if len(part) > room > 0:
                lines[-1] = show.paint(f"… {len(part) - room + 1} more", "dim")
        keys = f"q quit  s sort: {watch.order}{' (turned)' if watch.is_reversed else ''}  r turn  p pause  +/-"
        foot = f"{keys} {show.duration(self._every_s)}"
        if self._paused:
            foot = f"paused, p goes on  {foot}"
        if rows < 10_000:
            lines += [""] * (rows - 1 - len(lines))
            lines.append(show.paint(show.pad(show.cut(foot, columns), columns), "inverse"))
        return lines

    def _head(self, snapshot: Snapshot, watch: Watch, columns: int) -> list[str]:
        clock = time.strftime("%H:%M:%S", time.localtime(snapshot.now_ms / 1000))
        room = columns - len(clock) - 1
        first = show.pad(show.cut(f"JQ {self._where}", room), room) + " " + clock
        if self._trouble:
            first = show.paint(show.cut(f"cannot look: {self._trouble}", columns), "red")
        total = snapshot.totals
        shown = [state for state in show.STATES if total[state] or state in ("queued", "running", "done", "error")]
        counts = (f"{show.paint(show.count(total[state]), show.OF_STATE.get(state))} {state}" for state in shown)
        came, went, failed = (_rate(snapshot.rates[name]) for name in _COUNTED)
        said = f"in {came}  done {went}  failed {failed}"
        line = show.spark(watch.trace[-max(10, columns - len(said) - 3) :])
        return [show.paint(first, "bold"), "  ".join(counts), f"{said}  {show.paint(line, 'green')}"]

    def _parts(self, snapshot: Snapshot, columns: int) -> list[list[str]]:
        tables = (
            (queues.table if columns >= _WIDE else queues.narrow_table)(snapshot.queues),
            workers.table(snapshot.workers, snapshot.now_ms),
            limits.table(snapshot.constraints, snapshot.now_ms),
            _failures(snapshot),
        )
        return [table.lines(columns) for table in tables if table.rows or table is tables[0]]


def _failures(snapshot: Snapshot) -> show.Table:
    table = show.Table("FAILURES~1 | JOBS>:red | LAST | MESSAGE~2")
    for group in snapshot.failures:
        last = show.when(group["last_ms"], snapshot.now_ms)
        table.add(group["group"], show.count(group["count"]), last, failures.message_of(group))
    return table


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}/s" if per_second >= 10 or not per_second else f"{per_second:.1f}/s"


def _shares(wanted: list[int], room: int) -> list[int]:
    """How many lines each part gets: all it wants if that fits, else the large ones give way."""
    shares = list(wanted)
    while sum(shares) > max(room, 2 * len(shares)):
        largest = max(range(len(shares)), key=lambda place: shares[place])
        shares[largest] -= 1
    return shares


# -- what is looked at ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Snapshot:
    """One look. `rates` are of all queues, a second; `standings` has how each does."""

    now_ms: int
    queues: list[dict[str, Any]]
    workers: list[dict[str, Any]]
    constraints: list[dict[str, Any]]
    failures: list[dict[str, Any]]
    totals: Counter[str]
    rates: dict[str, float]
    standings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return asdict(self) | {"totals": dict(self.totals)}


def _lasting(known: dict[str, Any], queue: dict[str, Any]) -> dict[str, Any]:
    """What is still so of a queue that was looked at before. Where no job is ready none has a cause to wait."""
    gone = () if queue["queued"] else ("oldest_ready_ms", "cause", "held_by", "empties_ms")
    return {name: value for name, value in known.items() if name not in gone}


class Watch:
    """Looks again and again."""

    def __init__(self, client: Client, sort: str = "waiting") -> None:
        self.order = sort
        self.is_reversed = False
        self.trace: list[float] = []
        self._client = client
        self._begin_ms = (show.now_ms() // 60_000 - 1) * 60_000
        self._sums: list[tuple[float, Counter[str]]] = []
        self._rarely: dict[str, Any] = {}
        self._rarely_at = float("-inf")

    def look(self) -> Snapshot:
        """Raises what the client does."""
        now = show.now_ms()
        if time.monotonic() - self._rarely_at > _RARELY_S:
            self._rarely = {
                "constraints": self._client.constraints(),
                "failures": sorted(self._client.failures(), key=lambda group: -group["last_ms"]),
                "standings": standings(self._client),
            }
            self._rarely_at = time.monotonic()
        found = self._client.queues()
        totals: Counter[str] = Counter()
        for queue in found:
            totals.update({state: queue[state] for state in show.STATES})
        found = [{**_lasting(self._rarely["standings"].get(queue["name"], {}), queue), **queue} for queue in found]
        workers = self._client.workers()
        return self.sorted(Snapshot(now, found, workers, totals=totals, rates=self._rates(now), **self._rarely))

    def next_order(self, step: int) -> None:
        self.order = ORDERS[(ORDERS.index(self.order) + step) % len(ORDERS)]

    def sorted(self, snapshot: Snapshot) -> Snapshot:
        """The same look, in the order that is wanted now."""
        queues = sorted(snapshot.queues, key=lambda queue: self._place(queue, snapshot), reverse=self.is_reversed)
        return replace(snapshot, queues=queues)

    def _place(self, queue: dict[str, Any], snapshot: Snapshot) -> tuple[Any, ...]:
        waiting = sum(queue[state] for state in WAITING)
        came, went = rates(queue)
        first: dict[str, Any] = {"rate": (-came - went,), "errors": (-queue["error"],), "name": ()}
        first |= {"waiting": (-waiting, -queue["running"]), "running": (-queue["running"], -waiting)}
        return (*first[self.order], queue["name"])

    def _rates(self, now_ms: int) -> dict[str, float]:
        # Sums over buckets from a fixed one on: the difference of two looks is what happened in between.
        sums: Counter[str] = Counter()
        for one in self._client.stats("minute", from_ms=self._begin_ms, brief=True):
            failed = one["failed"] + one["error"] + one["lapsed"]
            sums.update({"enqueued": one["enqueued"], "done": one["done"] + one["moved"], "failed": failed})
        self._sums = [*self._sums, (time.monotonic(), sums)][-_SMOOTH - 1 :]
        (first_s, first), (last_s, last) = self._sums[0], self._sums[-1]
        passed_s = last_s - first_s
        if passed_s <= 0:
            return dict.fromkeys(_COUNTED, 0.0)
        latest_s = self._sums[-1][0] - self._sums[-2][0]
        self.trace = [*self.trace, max(0, last["done"] - self._sums[-2][1]["done"]) / max(0.01, latest_s)][-_TRACE:]
        if now_ms - self._begin_ms > 90 * 60_000:
            self._begin_ms, self._sums = (now_ms // 60_000 - 1) * 60_000, []
        return {name: max(0, last[name] - first[name]) / passed_s for name in _COUNTED}


# -- the terminal ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _raw_terminal() -> Iterator[None]:
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)

    def leave(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    # A terminal that was closed, or a kill, must not leave the screen as it is.
    handlers = [(number, signal.signal(number, leave)) for number in (signal.SIGTERM, signal.SIGHUP)]
    try:
        tty.setcbreak(handle)
        sys.stdout.write(_ENTER)
        yield
    finally:
        termios.tcsetattr(handle, termios.TCSANOW, before)
        with contextlib.suppress(OSError):
            sys.stdout.write(_LEAVE)
            sys.stdout.flush()
        for number, handler in handlers:
            signal.signal(number, handler)


def _key(timeout_s: float) -> str:
    """The next key, or nothing when none came in that time; an arrow comes as one."""
    handle = sys.stdin.fileno()
    ready, _, _ = select.select([handle], [], [], timeout_s)
    if not ready:
        return ""
    pressed = os.read(handle, 1).decode("latin-1")
    if pressed == "\x1b" and select.select([handle], [], [], 0)[0]:
        pressed += os.read(handle, 2).decode("latin-1")
    return pressed or "q"
