"""JQ at work: a server with a Redis of its own, three workers, 3,000 jobs, a limit for each customer, and a worker that
is killed on the way. Then what became of each job is held against what had to. Exits 0 only if nothing was lost,
nothing was finished twice, and every result is right.

    python examples/demo.py
"""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from jqmaster import JQ, JobFailed, current_job

JOBS = 3000
AT_ONCE = 4  # reports of one customer
CONCURRENCY = 16
KILLED = "push-2"
WORKERS = ("push-1", KILLED, "pull-1")
DEADLINE_S = 55.0

jq = JQ(timeout=10, retry_base=0.2, retry_cap=2)  # what a killed worker held is back soon


@jq.job
async def thumbnail(width: int) -> None:
    """Quick, and nobody asks for a result."""


@jq.job
async def invoice(number: int) -> str:
    """Gives a result that is kept."""
    return hashlib.sha256(str(number).encode()).hexdigest()


@jq.job
async def sync_account(fails: int) -> None:
    """The other side is flaky: it fails until it has failed so often."""
    if current_job.get().retry_count < fails:
        raise ConnectionError("the account does not answer")


@jq.job
async def charge_card() -> None:
    raise JobFailed("the card is refused", retry=False)


@jq.limit(by="argument.customer", concurrency=AT_ONCE)
@jq.job(priority=-30)
def report(customer: str, seconds: float) -> None:
    """Takes its time, and no customer may have many running at once."""
    time.sleep(seconds)


class Sent(NamedTuple):
    """A job, and what must become of it."""

    call: Any
    status: str = "done"
    failures: int = 0
    result: str | None = None


def plan() -> Iterator[Sent]:
    """All jobs, the same each time. One customer sends most of the reports, and first."""
    dice = random.Random(1)
    for number in range(JOBS // 10):
        customer = "globex" if number < JOBS // 14 else f"customer-{number % 12}"
        yield Sent(report.job(customer, dice.uniform(0.1, 0.2)))
    for number in range(JOBS - JOBS // 10):
        match dice.choices(("thumbnail", "invoice", "sync", "charge"), (48, 28, 17, 7))[0]:
            case "thumbnail":
                yield Sent(thumbnail.options(delay=dice.choice((0, 0, 5)), priority=dice.choice((-5, 0, 5))).job(128))
            case "invoice":
                yield Sent(invoice.job(number), result=hashlib.sha256(str(number).encode()).hexdigest())
            case "sync":
                fails = dice.choice((0, 0, 1, 1, 2, 3))
                yield Sent(sync_account.job(fails), failures=fails)
            case "charge":
                yield Sent(charge_card.job(), "error", failures=1)


class Processes:
    """The programs that run, each with a log in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, ready: str, *arguments: str) -> str:
        """Run `jqmaster` with these arguments until it says that it is ready; what it has said."""
        log = self._directory / f"{name}.log"
        with log.open("wb") as output:
            process = self._running[name] = subprocess.Popen(
                [sys.executable, "-m", "jqmaster.cli", *arguments],
                cwd=Path(__file__).parent, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        while process.poll() is None:
            said = log.read_text()
            if ready in said:
                return said
            time.sleep(0.02)
        sys.exit(f"{name} did not start:\n{log.read_text()}")

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait()
        print(f"kill -9 {process.pid}: worker {name} is gone, with all it was working on")

    def stop(self) -> None:
        """Workers first: they tell the server what became of their jobs."""
        for name in reversed(list(self._running)):
            process = self._running.pop(name)
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                print(f"{name} did not stop")


def main() -> None:
    sys.stdout.reconfigure(line_buffering=True)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jq-demo-")))
        processes = Processes(directory)
        stack.callback(processes.stop)
        said = processes.start("server", "Redis ", "serve", "--port", "0", "--data-dir", str(directory / "redis"))
        print(said.splitlines()[0])
        stack.enter_context(jq.using(said.split()[5]))
        for name in WORKERS:
            push = ["--push"] if name.startswith("push") else []
            processes.start(name, "worker ", "work", "demo:jq", "--url", jq.url, "--name", name, *push,
                            "--concurrency", str(CONCURRENCY))  # fmt: skip
        print(f"two workers that are pushed to and one that pulls; at most {AT_ONCE} reports of a customer at once")
        sent = list(plan())
        handles = jq.enqueue_many(each.call for each in sent)
        watch(processes)
        sys.exit(check(sent, handles))


def watch(processes: Processes) -> None:
    """Until all jobs have ended. On the way a worker is killed."""
    began = time.monotonic()
    is_killed = False
    while time.monotonic() < began + DEADLINE_S:
        counts: Counter[str] = Counter()
        for queue in jq.each("queues"):
            counts.update({state: queue[state] for state in ("queued", "scheduled", "running", "retrying")})
            counts.update({state: queue[state] for state in ("done", "error")})
        print(f"{time.monotonic() - began:5.1f} s  " + "  ".join(f"{state} {count}" for state, count in counts.items()))
        ended = counts["done"] + counts["error"]
        if ended == JOBS:
            return
        if ended > JOBS * 0.3 and not is_killed:
            processes.kill(KILLED)
            is_killed = True
        time.sleep(0.5)


def check(sent: list[Sent], handles: list[Any]) -> str | None:
    """None if all is as it has to be; else what is not."""
    ids = [handle.id for handle in handles]
    jobs = [job for at in range(0, JOBS, 500) for job in jq.operations.get(ids[at : at + 500])]
    problems = [] if len(set(ids)) == JOBS else ["two jobs have the same id"]
    again = 0
    for each, handle, job in zip(sent, handles, jobs, strict=True):
        if job is None or job["status"] != each.status or job["retry_count"] < each.failures:
            problems.append(f"{handle.id}: expected {each}, got {job}")
        elif each.result is not None and handle.result(timeout=10) != each.result:
            problems.append(f"{handle.id} has a wrong result")
        else:
            again += job["attempt"] > each.failures + (each.status == "done")
    if again > 4 * CONCURRENCY:  # more than the killed worker held, with what it had not reported yet
        problems.append(f"{again} jobs ran more often than they had to")
    problems += [f"audit: {problem}" for problem in jq.each("audit")]
    problems += check_limit([job for job in jobs if job and job["name"] == "report"])
    if problems:
        return "\n".join(["These are NOT as they should be:", *problems[:20]])
    print(f"{JOBS} jobs: nothing was lost, nothing was finished twice, every result is right; {again} ran once more,")
    print(f"which {KILLED} held when it was killed.")
    return None


def check_limit(reports: list[dict[str, Any]]) -> Iterator[str]:
    """By Redis' clock, of last attempts. What starts when another ends does not meet it."""
    for customer in {report["argument"]["customer"] for report in reports}:
        times = [report for report in reports if report["argument"]["customer"] == customer]
        changes = sorted(change for one in times for change in ((one["started_ms"], 1), (one["ended_ms"], -1)))
        most = max(accumulate(change for _, change in changes))
        if most > AT_ONCE:
            yield f"{customer} had {most} reports running at once, {AT_ONCE} are allowed"


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
