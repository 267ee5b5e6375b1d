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
from jqmaster.demo import check, jobs
from jqmaster.demo.plan import FLOODING, make_plan
from jqmaster.engine.replies import Document
from jqmaster.engine.scripts import Form
from jqmaster.errors import JQError

START_S = 30.0
STOP_S = 12.0
DEADLINE_S = 55.0
BATCH = 100
CONCURRENCY = 16
LOOK_EVERY_S = 0.5
KILLED = "push-2"
WORKERS = ("push-1", KILLED, "pull-1")
STATES = ("queued", "scheduled", "running", "retrying", *check.ENDED)


class DidNotStart(Exception):
    """A process ended, or said nothing, instead of becoming ready."""


class Show:
    """One run of the demo, in a directory of its own. Leaving the `with` block stops all processes that still run."""

    def __init__(self, count: int, form: Form, directory: Path) -> None:
        self._plan = make_plan(count)
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
        self._start_all()
        engine = await self._jq.aengine()
        sending = asyncio.create_task(self._send())
        try:
            await self._watch(sending)
            await sending
        finally:
            sending.cancel()
        documents: dict[str, Document] = {}
        for at in range(0, len(self._plan), BATCH):
            found = await engine.get([sent.id for sent in self._plan[at : at + BATCH]])
            documents |= {document["id"]: document for document in found if document}
        wanted = [self._jq.handle(sent.id) for sent in self._plan if sent.result is not None]
        results = await self._jq.agather(wanted, 10, return_errors=True)
        audit = await engine.audit_all()
        problems = [*self._stop(), *(f"audit: {problem}" for problem in audit)]
        return self._conclude(documents, dict(zip((handle.id for handle in wanted), results, strict=True)), problems)

    def _start_all(self) -> None:
        data = str(self._directory / "redis")
        self._start("master", "jqmaster.cli", "serve", "--port", "0", "--data-dir", data, "--form", self._form)
        heading = self._log("master").split("\n")[0]
        self._say(heading)
        url = heading.split()[-1]
        self._jq = JQ(url)
        for name in WORKERS:
            push = ["--push"] * name.startswith("push")
            self._start(name, "jqmaster.cli", "work", "jqmaster.demo.jobs:jq", "--url", url, "--name", name, *push,
                        "--concurrency", str(CONCURRENCY), "--stop-timeout", "3")  # fmt: skip
        self._say("two push workers and one pull worker are ready")

    def _start(self, name: str, *arguments: str) -> None:
        """Run `python -m arguments...` until it says that it is ready."""
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
            if any(line.startswith(("Redis ", "worker ")) for line in self._log(name).split("\n")[:-1]):
                return
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
            handles = await jq.aenqueue_many(
                getattr(jobs, sent.name).options(**sent.options).job(**sent.argument) for sent in batch
            )
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
        last = [sent.id for sent in self._plan if sent.argument.get("customer") == FLOODING and sent.id][-1:]
        explanation = await self._jq.aoperations.explain(last[0]) if last else {}
        for limit in explanation.get("constraints", ()):
            use = f"{limit['id']} of {limit['by']!r} has {limit['running']} of {limit['concurrency']} running"
            self._say(f"why does {last[0]} wait? {use}; {explanation['ahead']} are ahead of it")
            return True
        return False

    def _conclude(self, documents: check.Documents, results: dict[str, object], problems: Sequence[str]) -> bool:
        limit, unfair = check.check_limit(self._plan, documents)
        wrong = [*check.problems_of_jobs(self._plan, documents, results, 2 * CONCURRENCY), *unfair, *problems]
        print("\n" + check.table(self._plan, documents))
        print(f"\n{limit}")
        if wrong:
            print(f"\n{len(wrong)} things are NOT as they should be:", *wrong[:20], sep="\n  ")
        else:
            print("Nothing was lost, nothing was finished twice, every result is right.")
        return not wrong


def run(count: int = 3000, form: Form = "auto") -> int:
    """Run the demo with about so many jobs; 0 if everything held."""
    with tempfile.TemporaryDirectory(prefix="jq-demo-") as folder, Show(count, form, Path(folder)) as show:
        try:
            return 0 if asyncio.run(show.run()) else 1
        except (DidNotStart, JQError) as error:
            print(f"\ndemo: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("\ndemo: stopped", file=sys.stderr)
            return 130
