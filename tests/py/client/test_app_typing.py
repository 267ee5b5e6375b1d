"""What a type checker says of programs that use `JQ`: right calls pass, and each wrong one is found."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import jqmaster

mypy_api = pytest.importorskip("mypy.api")

# A line with `# wrong: code` must be refused with that code, and no other line may be.
PROGRAM = """
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, assert_type

from jqmaster import JQ, Call, Flow, FollowUp, Handle, Job, Move, ResumeAfter
from jqmaster import Hamster  # wrong: attr-defined

jq = JQ(timeout=60)


@jq.job
def add(a: int, b: int = 2) -> int:
    return a + b


@jq.job(queue="mail", max_retry=3, retry_on=(ConnectionError,))
async def mail(to: str, *, subject: str) -> dict[str, int]:
    return {to: 1}


@jq.schedule(cron="0 3 * * *")
@jq.job
def clean() -> None: ...


@jq.job
def split(path: str) -> FollowUp[int]:
    return FollowUp(1, [add.job(1)])


@jq.job(queue="slow")
async def upload(path: str) -> Move[str]:
    return Move("convert", {"path": path})


@jq.job
def both(path: str) -> FollowUp[int]:
    return FollowUp(Move("add"), [])


assert_type(split.enqueue("a").result(), int)
assert_type(split("a"), FollowUp[int])
assert_type(upload.enqueue("a").result(), str)
assert_type(both.enqueue("a").result(), int)
assert_type(add(1, 2), int)
assert_type(add.enqueue(1, b=2), Handle[int])
assert_type(add.map([(1, 2), 3]), list[Handle[int]])
assert_type(add.options(delay=5, priority=-1).enqueue(1), Handle[int])
assert_type(add.job(1), Call[int])
assert_type(jq.enqueue_many([add.job(1), add.job(2)]), list[Handle[int]])
assert_type(jq.gather(add.map([1, 2])), list[int])
assert_type(mail.enqueue("a", subject="b"), Handle[dict[str, int]])
assert_type(mail.options(delay=5).handle("id").result(), dict[str, int])
assert_type(jq.dependency_results(return_errors=True), list[Any])
assert_type(jq.group(add.job(n) for n in range(3)), Flow[list[int]])
assert_type(jq.chain([clean.job()], add.job(1), failed=clean.job()).result(), int)
assert_type(jq.chain(clean.job(), [add.job(1), split.job("a")], upload.job("a")).result(), str)
jq.chain(add.job(1), [add.job(1)])  # wrong: arg-type
jq.chain([add], add.job(1))  # wrong: arg-type
ResumeAfter([add.job(1), add.enqueue(1), "id"], if_failed="run", checkpoint={"at": 1})
ResumeAfter([add.job(1)], if_failed="no")  # wrong: arg-type


async def main() -> None:
    assert_type(await mail("a", subject="b"), dict[str, int])
    assert_type(await (await mail.aenqueue("a", subject="b")).aresult(), dict[str, int])
    assert_type(await add.enqueue(1), int)
    assert_type(await jq.chain([clean.job()], add.job(1)), int)
    assert_type(await (await jq.achain(clean.job(), add.job(1))).aprogress(), Counter[str])
    assert_type((await jq.aoperations.kick(where={"worker": "w"})).changed, int)
    assert_type(await jq.agather(await mail.amap(["a"])), list[dict[str, int]])


@jq.middleware
async def timing(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
    assert_type(job.attempt, int)
    return await call_next()


@jq.lifespan
async def resources() -> AsyncIterator[dict[str, int]]:
    yield {}


jq.repeat("weekly", add.job(1), cron="0 8 * * mon", catch_up=False)
jq.schedule(every=5, kwargs={"a": 1})(add)
jq.schedule(evry=5)  # wrong: call-arg
jq.middleware(lambda job: None)  # wrong: type-var
add.enqueue("x")  # wrong: arg-type
add.enqueue()  # wrong: call-arg
add.enqueue(1, delay=5)  # wrong: call-arg
add.options(dely=5)  # wrong: call-arg
add.options(priority="high")  # wrong: arg-type
add.options(delay=5).enqueue(b=2)  # wrong: call-arg
jq.job(prio=1)  # wrong: call-overload
text: str = add.enqueue(1).result()  # wrong: assignment

assert_type(add.enqueue(1).join(timeout=5), str)
assert_type(jq.operations.cancel(["id"], force=True), list[Any])
assert_type(jq.operations.retry(where={"queue": "mail", "status": ["error"]}).changed, int)
assert_type([job["id"] for job in jq.jobs(tag="a", newest=True)], list[Any])
assert_type(jq.operations.kick(where={"queue": "mail"}).cursor, str)
assert_type(jq.call("kick", where={"queue": "mail"}), Any)
assert_type([queue["name"] for queue in jq.each("queues")], list[Any])
add.enqueue(1).change(priority=3)
add.enqueue(1).change(prio=3)  # wrong: call-arg
jq.operations.cancel(["id"], forced=True)  # wrong: call-overload
jq.jobs(queu="mail")  # wrong: call-arg
jq.operations.queue("mail", paused="yes")  # wrong: arg-type
jq.queues()  # wrong: attr-defined
"""


@pytest.mark.timeout(600)  # without mypy's cache, on a busy machine
def test_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.setenv("MYPYPATH", str(Path(jqmaster.__file__).parents[1]))
    cache = Path(jqmaster.__file__).parents[2] / ".mypy_cache"
    said, problems, _ = mypy_api.run(
        ["--strict", "--no-error-summary", "--hide-error-context", f"--python-executable={sys.executable}",
         f"--cache-dir={cache}", "--follow-imports=silent", str(program)]
    )  # fmt: skip
    assert not problems
    lines = PROGRAM.split("\n")
    expected = {
        (number, found[1]) for number, line in enumerate(lines, 1) if (found := re.search(r"# wrong: ([\w-]+)", line))
    }
    found_ = {(int(found[1]), found[2]) for found in re.finditer(r"program\.py:(\d+): error: .*\[([\w-]+)\]", said)}
    assert found_ == expected, said
