"""Whether the web UI ever shows a wrong figure: its pages under load, while master and Redis are killed and stopped.

bench/ui_truth.py                  two minutes
bench/ui_truth.py --seconds 3600   an hour
bench/ui_truth.py --lie            pages show one more than there is: every page must be found wrong

Counts of states on the overview, the list of queues and a queue's page are read out of Chromium and held against what
Redis itself said within the time of which the page says that its figures are. When nothing changes they must be equal,
and no page may be without figures. While master or Redis is down, each page must say so. At the end `audit` must find
nothing. Exits with 1 when anything disagreed. Needs chromium, and the Python package playwright.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "py" / "support"))

from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import JQError
from processes import MasterProcess
from servers import RedisServer

NAMESPACE = "{truth}"
QUEUES = [f"q{number}" for number in range(8)] + ["."]
STATES = {
    "waiting": "queued", "running": "running", "retrying": "retrying", "scheduled": "scheduled",
    "blocked": "blocked", "failed": "error", "queued": "queued", "error": "error",
}  # fmt: skip
# Of a page: how often its figures come, by what it says of itself; and the queue that its tiles are about.
PAGES = {"/": 5.0, "/queues": 3.0, "/queue/q0": 3.0}
TILES_OF = {"/queue/q0": "q0"}
LIE = """const { get } = Object.getOwnPropertyDescriptor(Intl.NumberFormat.prototype, 'format');
Object.defineProperty(Intl.NumberFormat.prototype, 'format', {
  get() { const text = get.call(this); return (number) => text(number + 1); },
});"""
MOST_WAITING = 900  # then no more come than are picked: long runs end as they begin
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
KEPT = 6000  # notes: more than ten minutes
PATIENCE_S = 2.0  # from an answer to a look at it, on a busy machine
TOLD_S = 20.0  # within which a page must have said that nobody answers

READ = """() => ({
  live: document.getElementById('live').hidden ? '' : document.getElementById('live').textContent,
  banner: document.getElementById('banner').hidden ? '' : document.getElementById('banner').textContent,
  tiles: [...document.querySelectorAll('.tile')].map((tile) =>
    [tile.querySelector('.tile-name').textContent, tile.querySelector('.tile-value').textContent]),
  rows: [...document.querySelectorAll('main table[aria-label=Queues] tbody tr[data-key]')].map((row) =>
    [row.dataset.key, [...row.cells].map((cell) => [cell.dataset.label, cell.textContent.trim()])]),
})"""


class Truth(threading.Thread):
    """Keeps jobs moving while `is_busy`, and notes what Redis says: [(from, to, {queue: {state: count}})]."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.is_busy = True
        self.is_over = False
        self.notes: list[tuple[float, float, dict[str, dict[str, int]]]] = []
        self.problems: list[str] = []

    def run(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        async with connect(self.url) as redis:
            engine = Engine(redis, NAMESPACE)
            chance = random.Random(7)
            steps = self._steps(engine, chance)
            # One after the other: so every state that a page can see is noted.
            while not self.is_over:
                with contextlib.suppress(JQError, OSError):
                    if self.is_busy:
                        await next(steps)
                    await self._note(engine)
                await asyncio.sleep(0.1)
            self.problems = await engine.audit_all()

    async def _note(self, engine: Engine) -> None:
        began = time.time()
        found = (await engine.queues(QUEUES)).documents
        counts = {one["name"]: {state: one[state] for state in set(STATES.values())} for one in found}
        self.notes.append((began, time.time(), counts))
        del self.notes[:-KEPT]

    def _steps(self, engine: Engine, chance: random.Random) -> Iterator[Awaitable[Any]]:
        """Nothing in it changes by itself within a run: no retries, leases and delays of a day."""
        running: list[Any] = []

        async def pick() -> None:
            running.extend((await engine.pick("truth", chance.sample(QUEUES, 4), count=9)).jobs)

        async def finish() -> None:
            ended, running[:] = running[2:], running[:2]
            await engine.finish(
                "truth", [({"id": one.id, "token": one.token, "type": outcome()}, b"\xc0") for one in ended]
            )

        def outcome() -> str:
            return chance.choice(("success", "success", "failure"))

        def spec(queue: str) -> dict[str, Any]:
            return {"name": queue, "max_retry": 0, "max_lapses": 9, "timeout": 86400} | (
                {"delay": 86400} if chance.random() < 0.1 else {}
            )

        while True:
            waiting = sum(one["queued"] for one in self.notes[-1][2].values()) if self.notes else 0
            come = 12 if waiting < MOST_WAITING else 4
            yield engine.enqueue([(spec(queue), b"\xc0") for queue in chance.choices(QUEUES, k=come)])
            yield pick()
            yield finish()

    def between(self, start: float, end: float) -> list[dict[str, dict[str, int]]]:
        """What was so at any moment of this time: with the note before it and the one behind it."""
        notes = self.notes[:]
        first = max((index for index, note in enumerate(notes) if note[1] < start), default=0)
        last = next((index for index, note in enumerate(notes) if note[0] > end), len(notes))
        return [note[2] for note in notes[first : last + 1]]


def figure(text: str) -> tuple[float, float] | None:
    """1,204 → (1204, 1204), 12.3K → (12250, 12350): what a figure on a page can stand for."""
    if not (found := re.fullmatch(r"([\d,]+)(?:\.(\d))?(K?)", text)):
        return None
    number = float(found[1].replace(",", "") + "." + (found[2] or "0"))
    return (1000 * number - 50, 1000 * number + 50) if found[3] else (number, number)


def shown(target: str, read: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(queue or empty for all, state, figure) of what a page shows."""
    of = [(TILES_OF.get(target, ""), read["tiles"]), *read["rows"]]
    for queue, cells in of:
        for title, value in cells:
            if state := STATES.get((title or "").lower()):
                yield queue, state, value


class Check:
    """Looks at the pages, and counts."""

    def __init__(self, truth: Truth, pages: dict[str, Page]) -> None:
        self.truth = truth
        self.pages = pages
        self.figures = 0
        self.wrong: list[str] = []
        # What was read, until Redis said something after it: (page, from, to, read, is_still).
        self.pending: list[tuple[str, float, float, dict[str, Any], bool]] = []

    def say(self, text: str) -> None:
        self.wrong.append(text)
        print("WRONG", text, flush=True)

    def look(self, is_still: bool = False) -> None:
        """Each figure was right within the time of which it says to be; when nothing changes, it is right."""
        for target, page in self.pages.items():
            begun = time.time()
            read = page.evaluate(READ)
            ended = time.time()
            if not read["live"]:
                continue
            old = re.fullmatch(r"(\d+) s old", read["live"])
            age = int(old[1]) + 1 if old else 2 * PAGES[target] + PATIENCE_S
            start = ended - age - PAGES[target] - PATIENCE_S
            if is_still:
                start = begun if not old else start
            self.pending.append((target, start, ended, read, is_still))
        self.judge()

    def judge(self, is_last: bool = False) -> None:
        """A page may show what a step did before this was noted: so it is judged when the next note is there."""
        noted = self.truth.notes[-1][0] if self.truth.notes else 0.0
        ready = [one for one in self.pending if is_last or one[2] < noted]
        self.pending = [one for one in self.pending if not is_last and one[2] >= noted]
        for target, start, ended, read, is_still in ready:
            possible = self.truth.between(start, ended)
            before = self.figures
            for queue, state, text in shown(target, read):
                if not (value := figure(text)):
                    continue
                self.figures += 1
                found = [
                    note.get(queue, {}).get(state, 0) if queue else sum(one[state] for one in note.values())
                    for note in possible
                ]
                if found and not (min(found) <= value[1] and value[0] <= max(found)):
                    where = f"{target} {queue or 'all'} {state}"
                    self.say(f"{where}: {text} shown, {min(found)} to {max(found)} in Redis; “{read['live']}”")
            if is_still and self.figures == before:
                self.say(f"{target}: no figures")

    def for_seconds(self, seconds: float) -> None:
        until = time.time() + seconds
        while time.time() < until:
            self.look()
            self.wait(0.5)

    def wait(self, seconds: float) -> None:
        next(iter(self.pages.values())).wait_for_timeout(seconds * 1000)

    def all_say(self, what: str, is_so: Callable[[dict[str, Any]], bool]) -> None:
        """Every page says in time how things are."""
        until = time.time() + TOLD_S
        silent = dict(self.pages)
        while silent and time.time() < until:
            self.look()
            silent = {target: page for target, page in silent.items() if not is_so(page.evaluate(READ))}
            self.wait(0.5)
        for target in silent:
            self.say(f"{target}: {what}, and it does not say so within {TOLD_S:g} s")


def faults(
    redis: RedisServer, masters: list[MasterProcess]
) -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    """Again and again each: (what, how it begins, how it ends)."""
    port = masters[0].port

    def start_master() -> None:
        masters.append(MasterProcess("--redis", redis.url, "--namespace", NAMESPACE, port=port))

    def to_redis(number: int) -> Callable[[], None]:
        assert redis.process is not None
        return lambda: redis.process.send_signal(number) if redis.process else None

    while True:
        yield "the master is killed", lambda: masters[-1].kill(), start_master
        yield "Redis is killed", redis.kill, lambda: redis.start() and None
        yield "Redis is stopped", to_redis(signal.SIGSTOP), to_redis(signal.SIGCONT)
        yield (
            "the master is stopped",
            lambda: masters[-1].signal(signal.SIGSTOP),
            lambda: masters[-1].signal(signal.SIGCONT),
        )


def run(seconds: float, is_lie: bool) -> int:
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(RedisServer("--appendonly", "yes", "--appendfsync", "always"))
        masters = [MasterProcess("--redis", redis.url, "--namespace", NAMESPACE)]
        stack.callback(lambda: [master.close() for master in masters])
        truth = Truth(redis.url)
        truth.start()
        playwright = stack.enter_context(sync_playwright())
        chromium = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        pages = {target: browser.new_context().new_page() for target in PAGES}
        for target, page in pages.items():
            if is_lie:
                page.add_init_script(LIE)
            page.goto(f"{masters[0].url}/ui{target}")
        check = Check(truth, pages)
        until = time.time() + seconds
        for what, begin, end in faults(redis, masters):
            check.for_seconds(10)
            truth.is_busy = False
            check.wait(2 * max(PAGES.values()) + PATIENCE_S)
            check.look(is_still=True)
            truth.is_busy = True
            if time.time() > until:
                break
            print(f"{check.figures} figures, {len(check.wrong)} wrong; {what}", flush=True)
            begin()
            check.all_say(what, lambda read: bool(read["banner"]))
            end()
            check.all_say(f"{what} no more", lambda read: not read["banner"] and read["live"] == "Live")
        truth.is_over = True
        truth.join(60)
        check.judge(is_last=True)
        browser.close()
    for problem in truth.problems:
        print("AUDIT", problem)
    print(f"{check.figures} figures, {len(check.wrong)} wrong, {len(truth.problems)} problems of audit")
    return 1 if check.wrong or truth.problems or not check.figures or truth.is_alive() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--lie", action="store_true")
    options = parser.parse_args()
    sys.exit(run(options.seconds, options.lie))


if __name__ == "__main__":
    main()
