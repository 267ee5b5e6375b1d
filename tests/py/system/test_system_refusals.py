"""A system refuses what one namespace refuses, by the same code and path, whatever its calls are taken apart by."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from bad_inputs import CASES
from bad_values import Case
from jqmaster.engine.calls import pack
from jqmaster.errors import JQError
from jqmaster.system import calls
from jqmaster.system.engine import OPERATIONS, SystemEngine
from jqmaster.system.routing import unpacked

WRONG = [case for case in CASES if case.code == "INVALID" and case.script in OPERATIONS]
# That need a namespace with very many conditions, or are of what the system says itself.
ACCEPTED = {
    "change: too much matching", "enqueue: too much matching", "retry: too much matching", "enqueue: generation -1",
    "enqueue: generation 0.5", "enqueue: generation 0", "enqueue: generation True", "enqueue: generation []",
}  # fmt: skip
LIMITED = msgpack.packb({"name": "limited"})
CONSTRAINTS: list[dict[str, Any]] = [
    {"id": "known", "concurrency": 1},
    {"id": "keyed", "by": "argument.a", "concurrency": 1},
    {"id": "keyed twice", "by": ["name", "argument.a"], "rate": {"limit": 1, "period": 10**6}},
]


def is_impossible(case: Case) -> bool:
    """Whether a system refuses it as a whole: registered workers that nothing is pushed to, and waiting in a call."""
    spec = unpacked(case.args[0]) if case.args else {}
    if case.script == "register":
        return spec.get("announce") is not True and "url" not in spec
    wish = spec.get("pick") if case.script == "finish" else spec
    return case.script in ("finish", "pick") and isinstance(wish, dict) and "wait" in wish


@pytest.mark.parametrize("script", sorted({case.script for case in WRONG}))
async def test_a_system_refuses_what_a_namespace_refuses(redis_url: str, namespace: str, script: str) -> None:
    await calls.create(redis_url, namespace, 4)
    engine = SystemEngine(redis_url, namespace)
    for one in await engine.partitions():
        for spec in CONSTRAINTS:
            await one.call("constrain", pack(spec), LIMITED)
    wrong, accepted, impossible = [], set(), set()
    cases = [case for case in WRONG if case.script == script]
    for case in cases:
        try:
            await engine.call(script, *case.args)
        except JQError as problem:
            if "is not possible over the partitions" in problem.message:
                impossible.add(case.title)
            elif (problem.code, problem.path or "") != (case.code, case.path or ""):
                wrong.append((case.title, case.code, case.path, problem))
        else:
            accepted.add(case.title)
    await engine.close()
    assert wrong == []
    assert accepted == {case.title for case in cases} & ACCEPTED
    assert impossible == {case.title for case in cases if is_impossible(case)}
