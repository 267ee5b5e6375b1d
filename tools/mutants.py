"""Puts one fault at a time into a copy of this tree, and sees whether the tests that should find it do.

The faults are in ``mutants.toml``: the file, its exact text, what that becomes, why it matters, who finds it.
Tests that fail without a fault prove nothing, so all of them run without one first.
``python tools/mutants.py [WORD...]`` takes those faults whose file or reason has one of the words.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tools" / "mutants.toml"
LONGEST_S = 300  # a fault may make a test wait for ever
WAIT_S, TEST_S = 10, 60  # in place of the minutes that a machine may stand still: how long tests wait, and may take
SHARED = (".venv", "tools/js/node_modules")
# Of pytest, whose tests also log what begins with ERROR; of busted.
FAILED = re.compile(r"^(?:(?:FAILED|ERROR) (?=tests/)|(?:Failure|Error) -> )(.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """A fault. ``found_by``: files of tests, all in Lua or all in Python; of the latter maybe with ``::name``."""

    file: str
    text: str
    why: str
    found_by: tuple[str, ...]
    becomes: str = ""

    def problem(self) -> str:
        """What is wrong with the entry itself."""
        if missing := [path for path in (self.file, *self.found_by) if not (ROOT / path.partition("::")[0]).is_file()]:
            return f"there is no {', '.join(missing)}"
        count = (ROOT / self.file).read_text().count(self.text)
        return "" if count == 1 else f"its text stands {count} times in the file, expected once"


def read() -> list[Mutant]:
    """They stand by the files that they are in."""
    by_file = tomllib.loads(LIST.read_text())
    entries = [{"file": file, **one} for file, some in by_file.items() for one in some]
    return [Mutant(**{**entry, "found_by": tuple(entry["found_by"])}) for entry in entries]


def copy_to(tree: Path) -> None:
    """What git knows of, as it is here."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(lambda name: (ROOT / name).is_file(), listed.decode().split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    for name in SHARED:
        (tree / name).symlink_to(ROOT / name)


def put(path: Path, text: str) -> None:
    """Write a file so that Python sees that it is another one: bytecode is kept between the runs."""
    later = path.stat().st_mtime + 2
    path.write_text(text)
    os.utime(path, (later, later))


@contextmanager
def fault(mutant: Mutant | None, tree: Path) -> Iterator[None]:
    if mutant is None:
        yield
        return
    path = tree / mutant.file
    right = path.read_text()
    put(path, right.replace(mutant.text, mutant.becomes))
    try:
        yield
    finally:
        put(path, right)


def run(tests: Sequence[str], tree: Path) -> tuple[str, str]:
    """What came of it (passed, failed, broken: they did not get to a test), and what was printed."""
    if tests[0].endswith(".lua"):
        command = ["tests/lua/run", "--no-keep-going", *tests]
    else:
        command = [".venv/bin/python", "-m", "pytest", "-qx", f"--timeout={TEST_S}", "-p", "no:cacheprovider", *tests]
    own = {"PYTHONPATH": str(tree / "python"), "PYTHONPYCACHEPREFIX": str(tree / "bytecode"), "JQ_WAIT": str(WAIT_S)}
    ended = subprocess.run(
        ["timeout", "--kill-after=10", str(LONGEST_S), *command],  # it ends the whole group of processes
        cwd=tree, env={**os.environ, **own},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    if ended.returncode == 0:
        return "passed", ended.stdout
    has_run = re.search(r"[1-9]\d* (failures?|errors?|failed)\b", ended.stdout)
    return "failed" if has_run and ended.returncode != 124 else "broken", ended.stdout


def by_file(mutants: Sequence[Mutant]) -> Iterator[tuple[str, ...]]:
    """The tests that find them, those of a file together."""
    wanted = {tests for one in mutants for tests in one.found_by}
    for file in {tests.partition("::")[0] for tests in wanted}:
        yield (file,) if file in wanted else tuple(sorted(tests for tests in wanted if tests.startswith(f"{file}::")))


def check(mutant: Mutant | None, tests: Sequence[str], tree: Path) -> tuple[bool, str]:
    """Whether it went as it should, and the line that says how."""
    begun = time.monotonic()
    with fault(mutant, tree):
        came, printed = run(tests, tree)
    took = f"{time.monotonic() - begun:.0f} s"
    if mutant is None:
        is_fine = came == "passed"
        line = f"{'well' if is_fine else 'FAILS WITHOUT A FAULT'}: {' '.join(tests)}, {took}"
    else:
        is_fine = came == "failed"
        line = f"{ {'passed': 'SURVIVES', 'failed': 'found', 'broken': 'BROKEN'}[came] }: {mutant.file}: {mutant.why}"
        if is_fine and (by := FAILED.search(printed)):
            line += f"\n    by {by[1]}, {took}"
    if not is_fine and came != "passed":
        line += "\n" + "\n".join(printed.splitlines()[-15:])
    return is_fine, line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--faults", action="store_true", help="do not run the tests without a fault")
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_args()
    wanted = [one for one in read() if not options.words or any(w in f"{one.file} {one.why}" for w in options.words)]
    if stale := [f"STALE: {one.file}: {one.why}: {one.problem()}" for one in wanted if one.problem()]:
        print("\n".join(stale))
        return 1
    print(f"{len(wanted)} faults", flush=True)
    tasks: list[tuple[Mutant | None, tuple[str, ...]]] = [(one, one.found_by) for one in wanted]
    if not options.faults:
        tasks = [*((None, tests) for tests in sorted(by_file(wanted))), *tasks]
    wrong = 0
    own = threading.local()  # of each thread the tree that it works in

    def prepare() -> None:
        own.tree = Path(tempfile.mkdtemp(dir=folder))
        copy_to(own.tree)

    with (
        tempfile.TemporaryDirectory(prefix="jq-mutants-") as folder,
        ThreadPoolExecutor(options.jobs, initializer=prepare) as pool,
    ):
        try:
            for done in as_completed([pool.submit(lambda task: check(*task, own.tree), task) for task in tasks]):
                is_fine, line = done.result()
                wrong += not is_fine
                print(line, flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
    print(f"{wrong} of {len(tasks)} not as they should be" if wrong else f"{len(wanted)} faults: all found.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
