"""Puts one fault at a time into a copy of this tree, and sees whether the tests that should find it do.

The faults are in ``mutants.toml``: the file, its exact text, what that becomes, why it matters, who finds it.
Tests that fail without a fault prove nothing, so each file of them runs without one first.
``python tools/mutants.py [WORD...]`` takes those faults whose file or reason has one of the words.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tools" / "mutants.toml"
LONGEST_S = 300.0  # a fault may make a test wait for ever
SHARED = (".venv", "tools/js/node_modules")
BUILT = "build"
under_way: set[subprocess.Popen[str]] = set()


@dataclass(frozen=True)
class Mutant:
    """A fault. ``found_by``: files of tests, all in Lua or all in Python; of the latter maybe with ``::name``."""

    file: str
    text: str
    becomes: str
    why: str
    found_by: tuple[str, ...]

    def problem(self) -> str:
        """What is wrong with the entry itself."""
        if missing := [path for path in (self.file, *self.found_by) if not (ROOT / path.partition("::")[0]).is_file()]:
            return f"there is no {', '.join(missing)}"
        count = (ROOT / self.file).read_text().count(self.text)
        return "" if count == 1 else f"its text stands {count} times in the file, expected once"


def read() -> list[Mutant]:
    entries = tomllib.loads(LIST.read_text())["mutant"]
    return [Mutant(**{**entry, "found_by": tuple(entry["found_by"])}) for entry in entries]


def copy_to(tree: Path) -> None:
    """What git knows of, as it is here, and what was built of it."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    for name in SHARED:
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).symlink_to(ROOT / name)
    build(ROOT)
    keep_built(ROOT, tree)


def build(tree: Path) -> None:
    code = 'from jqmaster.bundle.built import builtin; builtin(), builtin("settable")'
    subprocess.run([tree / ".venv/bin/python", "-c", code], env=environment(tree), check=True)


def keep_built(source: Path, tree: Path) -> None:
    shutil.copytree(source / BUILT, tree / BUILT, ignore=lambda _, names: {n for n in names if "scripts-" not in n})


def environment(tree: Path) -> dict[str, str]:
    """Processes that tests start are to run the copy's package as well."""
    return {**os.environ, "PYTHONPATH": str(tree / "python"), "PYTHONDONTWRITEBYTECODE": "1"}


@contextmanager
def fault(mutant: Mutant | None, tree: Path) -> Iterator[None]:
    if mutant is None:
        yield
        return
    path = tree / mutant.file
    right = path.read_text()
    path.write_text(right.replace(mutant.text, mutant.becomes))
    try:
        yield
    finally:
        path.write_text(right)
        if mutant.file.endswith(".lua"):
            shutil.rmtree(tree / BUILT)
            keep_built(ROOT, tree)


def run(tests: Sequence[str], tree: Path) -> tuple[str, str]:
    """What came of it (passed, failed, broken: they did not get to a test), and what was printed."""
    if tests[0].endswith(".lua"):
        command = ["tests/lua/run", "--no-keep-going", *tests]
    else:
        command = [".venv/bin/python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    process = subprocess.Popen(
        command, cwd=tree, env=environment(tree), text=True, errors="replace", start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    under_way.add(process)
    try:
        said = process.communicate(timeout=LONGEST_S)[0]
    except subprocess.TimeoutExpired:
        end(process)
        return "broken", f"{process.communicate()[0]}\nstill under way after {LONGEST_S:.0f} s"
    finally:
        under_way.discard(process)
    if process.returncode == 0:
        return "passed", said
    counted = re.search(r"[1-9]\d* (failures?|errors?|failed)\b", said)
    return "failed" if counted else "broken", said


def end(process: subprocess.Popen[str]) -> None:
    """With all that it started: tests have some time to put things away."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(10)


def stop(*_: object) -> None:
    raise SystemExit("ended from outside")


def check(mutant: Mutant | None, tests: Sequence[str], tree: Path) -> tuple[bool, str]:
    """Whether it went as it should, and the line that says how."""
    begun = time.monotonic()
    with fault(mutant, tree):
        came, said = run(tests, tree)
    line = f"{time.monotonic() - begun:5.0f} s  "
    if mutant is None:
        is_fine = came == "passed"
        line += f"{'well' if is_fine else 'FAILS WITHOUT A FAULT'}: {' '.join(tests)}"
    else:
        is_fine = came == "failed"
        line += f"{ {'passed': 'SURVIVES', 'failed': 'found', 'broken': 'BROKEN'}[came] }: {mutant.file}: {mutant.why}"
    if not is_fine and came != "passed":
        line += "\n" + "\n".join(said.splitlines()[-15:])
    return is_fine, line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--faults", action="store_true", help="do not run the tests without a fault")
    parser.add_argument("--list", action="store_true", help="only see whether the list fits the files")
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_args()
    mutants = [
        one for one in read() if not options.words or any(word in f"{one.file} {one.why}" for word in options.words)
    ]
    stale = [f"{one.file}: {one.why}: {problem}" for one in mutants if (problem := one.problem())]
    print("\n".join([*(f"STALE: {line}" for line in stale), f"{len(mutants)} faults"]), flush=True)
    if stale or options.list:
        return bool(stale)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    plain = sorted({tests.partition("::")[0] for one in mutants for tests in one.found_by})
    wanted = [*((None, (tests,)) for tests in plain if not options.faults), *((one, one.found_by) for one in mutants)]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="jq-mutants-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(options.jobs):
            tree = Path(folder, str(number))
            copy_to(tree)
            trees.put(tree)

        def one(task: tuple[Mutant | None, tuple[str, ...]]) -> tuple[bool, str]:
            tree = trees.get()
            try:
                return check(*task, tree)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(options.jobs) as pool:
            try:
                for done in as_completed([pool.submit(one, task) for task in wanted]):
                    is_fine, line = done.result()
                    wrong += not is_fine
                    print(line, flush=True)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in list(under_way):
                    end(process)
    print(f"{wrong} of {len(wanted)} not as they should be" if wrong else "All found.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
