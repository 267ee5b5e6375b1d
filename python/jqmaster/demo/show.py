"""Runs the demo: a master with a Redis of its own, three workers, thousands of jobs, a limit, one worker killed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from jqmaster.client.app import JQ
from jqmaster.demo import check, journal
from jqmaster.demo.plan import FLOODING, make_plan
from jqmaster.demo.worker import CONCURRENCY
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.replies import Document
from jqmaster.engine.scripts import Form
from jqmaster.errors import JQError

START_S = 30.0
STOP_S = 12.0
DEADLINE_S = 55.0
BATCH = 100
LOOK_EVERY_S = 0.5
KILLED = "push-2"
WORKERS = ("push-1", KILLED, "pull-1")
STATES = ("queued", "scheduled", "running", "retrying", *check.ENDED)


class DidNotStart(Exception):
    """A process ended, or said nothing, instead of becoming ready."""


class Show:
    """One run of the demo, in a directory of its own. Leaving the `with` block stops all processes that still run."""

    def __init__(self, jobs: int, form: Form, directory: Path) -> None:
        self._plan = make_plan(jobs)
        self._form = form
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._began = time.monotonic()

    def __enter__(self) -> Show:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    async def run(self) -> bool:
        """Whether everything was as it should be."""
        redis_url = self._start_all()
        async with connect(redis_url) as redis:
            engine = Engine(redis, form=self._form)
            sending = asyncio.create_task(self._send())
            try:
                await self._watch(sending)
                await sending
            finally:
                sending.cancel()
            ids = [sent.id for sent in self._plan]
            documents: dict[str, Document] = {}  # straight from Redis, the second way in beside HTTP
            for at in range(0, len(ids), 500):
                documents |= {
                    document["id"]: document for document in await engine.get(list(ids[at : at + 500])) if document
                }
            wanted = [self._jq.handle(sent.id) for sent in self._plan if sent.result is not None]
            results = await self._jq.agather(wanted, 10, return_errors=True)
            audit = await engine.audit_all()
        problems = [*self._stop(), *(f"audit: {problem}" for problem in audit)]
        return self._conclude(documents, dict(zip((handle.id for handle in wanted), results, strict=True)), problems)

    def _start_all(self) -> str:
        """The URL of the master's Redis."""
        data = str(self._directory / "redis")
        ready = self._start("master", "jqmaster.cli", "serve", "--port", "0", "--data-dir", data, "--form", self._form)
        heading = self._log("master").split("\n")[0]
        self._say(heading)
        url = heading.split()[-1]
        self._jq = JQ(url, keep_result=False)
        for name in WORKERS:
            path = str(self._directory / f"{name}.journal")
            self._start(name, "jqmaster.demo.worker", url, name, path, name.partition("-")[0])
        self._say("two push workers and one pull worker are ready")
        return ready.split()[1]

    def _start(self, name: str, *arguments: str) -> str:
        """Run `python -m arguments...`; the line by which it says that it is ready."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("JQ_")}
        package = str(Path(__file__).resolve().parents[2])
        kept["PYTHONPATH"] = os.pathsep.join([package, *filter(None, [kept.get("PYTHONPATH")])])
        with open(self._directory / f"{name}.log", "wb") as log:
            # Sessions of their own: Ctrl-C reaches the demo alone, and it stops them in order.
            self._processes[name] = process = subprocess.Popen(
                [sys.executable, "-m", *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env=kept,
            )  # fmt: skip
        deadline = time.monotonic() + START_S
        while process.poll() is None and time.monotonic() < deadline:
            for line in self._log(name).split("\n")[:-1]:
                if line.startswith(("Redis ", "worker ")):
                    return line
            time.sleep(0.02)
        raise DidNotStart(f"{name} did not start:\n{self._log(name)[-2000:]}")

    def _stop(self) -> list[str]:
        """Stop the workers, then the master, to which they say what they did; what went wrong."""
        problems = []
        for names in (WORKERS, ("master",)):
            stopping = {name: self._processes.pop(name) for name in names if name in self._processes}
            for process in stopping.values():
                process.terminate()
            deadline = time.monotonic() + STOP_S
            for name, process in stopping.items():
                try:
                    if code := process.wait(max(0.1, deadline - time.monotonic())):
                        problems.append(f"{name} ended with exit code {code}: {self._log(name)[-500:]}")
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    problems.append(f"{name} did not stop within {STOP_S:.0f} s")
        return problems

    def _kill(self) -> None:
        process = self._processes.pop(KILLED)
        process.kill()
        process.wait()
        self._say(f"kill -9 {process.pid}: worker {KILLED} is gone, with all it was working on")

    def _log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(errors="replace")

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:5.1f} s  {text}", flush=True)

    async def _send(self) -> None:
        jq = self._jq
        await jq.aconstrain("reports", {"name": "report"}, by="argument.customer", concurrency=check.AT_ONCE)
        self._say(f"limit: {check.AT_ONCE} reports at once for each customer")
        for at in range(0, len(self._plan), BATCH):
            batch = self._plan[at : at + BATCH]
            handles = await jq.aenqueue_many(jq.new_job(**sent.spec) for sent in batch)
            for sent, handle in zip(batch, handles, strict=True):
                sent.id = handle.id
                if sent.ends == "cancelled":
                    await handle.acancel()

    async def _watch(self, sending: asyncio.Task[None]) -> None:
        explained = killed = False
        while time.monotonic() - self._began < DEADLINE_S:
            explained = explained or await self._explain()
            counts: Counter[str] = Counter()
            async for queue in self._jq.aeach("queues"):
                counts.update({state: queue[state] for state in STATES})
            self._say("  ".join(f"{state} {counts[state]}" for state in STATES))
            ended = sum(counts[state] for state in check.ENDED)
            if not killed and ended > len(self._plan) * 0.3:
                self._kill()
                killed = True
            if sending.done() and (sending.exception() or ended >= len(self._plan)):
                return
            await asyncio.sleep(LOOK_EVERY_S)
        self._say(f"gave up: {ended} of {len(self._plan)} jobs have ended")

    async def _explain(self) -> bool:
        """Say why the last report of the flood waits, once it does; whether that was said."""
        last = [sent.id for sent in self._plan if sent.customer == FLOODING and sent.id][-1:]
        explanation = await self._jq.handle(last[0]).aexplain() if last else {}
        for limit in explanation.get("constraints", ()):
            use = f"{limit['id']} of {limit['by']!r} has {limit['running']} of {limit['concurrency']} running"
            self._say(f"why does {last[0]} wait? {use}; {explanation['ahead']} are ahead of it")
            return True
        return False

    def _conclude(self, documents: check.Documents, results: dict[str, object], problems: Sequence[str]) -> bool:
        entries = {name: journal.read(self._directory / f"{name}.journal") for name in WORKERS}
        accepted = [entry for of_worker in entries.values() for entry in of_worker]
        limit, unfair = check.check_limit(self._plan, documents)
        wrong = [*check.problems_of_jobs(self._plan, documents, results, accepted, CONCURRENCY), *unfair, *problems]
        finished = {name: sum(entry.state in check.ENDED for entry in of_worker) for name, of_worker in entries.items()}
        print("\n" + check.table(self._plan, documents))
        print("\nfinished by " + ", ".join(f"{name} {count}" for name, count in finished.items()))
        print(limit)
        if wrong:
            print(f"\n{len(wrong)} things are NOT as they should be:", *wrong[:20], sep="\n  ")
        else:
            print("Nothing was lost, nothing was finished twice, every result is right.")
        return not wrong


def run(jobs: int = 3000, form: Form = "auto") -> int:
    """Run the demo with about so many jobs; 0 if everything held."""
    with tempfile.TemporaryDirectory(prefix="jq-demo-") as folder, Show(jobs, form, Path(folder)) as show:
        try:
            return 0 if asyncio.run(show.run()) else 1
        except (DidNotStart, JQError) as error:
            print(f"\ndemo: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("\ndemo: stopped", file=sys.stderr)
            return 130
