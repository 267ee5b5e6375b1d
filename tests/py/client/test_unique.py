"""Keys of `unique`: equal arguments are one, whatever gives them and wherever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest

from jqmaster import JQ, MessagePack

PROGRAM = """
import sys
from jqmaster import JQ
from typed_values import *

jq = JQ(sys.argv[1], namespace=sys.argv[2])

@jq.job(unique=True)
def values(names: set[str], orders: list[Order], record: Record, bare=None, **more) -> None: ...

order = Order(ID, Decimal("9.90"), sizes={Size.SMALL, Size.LARGE})
hook = Hook(url="https://a.b/", secret="x", path="p", names={"a", "b", "c"})
bare = {"x": {1, "b", None}, "y": frozenset({frozenset({"p", "q"}), frozenset()}), "z": [hook], "k": {Size.SMALL}}
print(values.enqueue({"a", "b", "c", "d"}, [order], Record(ID, frozenset("abcd")), bare, m={1.5, DAY}, n=1).id)
"""


class Packs(MessagePack):
    """Knows a type more."""

    def dumps(self, value: Any) -> bytes:
        return bytes(msgpack.packb(value, default=lambda value: list(value) if isinstance(value, set) else str(value)))


@pytest.fixture
def jq(redis_url: str, namespace: str) -> JQ:
    return JQ(redis_url, namespace=namespace)


def test_every_process_makes_the_same_key(redis_url: str, namespace: str) -> None:
    path = os.pathsep.join([*sys.path, str(Path(__file__).parents[1] / "support")])
    environments = [{**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": str(seed)} for seed in range(4)]
    command = [sys.executable, "-c", PROGRAM, redis_url, namespace]
    ids = {subprocess.run(command, env=one, check=True, stdout=subprocess.PIPE).stdout for one in environments}
    assert len(ids) == 1


def test_equal_arguments_are_one_key_however_they_are_given(jq: JQ) -> None:
    def anything(first=None, /, value=1, *rest, key=None, **more): ...  # type: ignore[no-untyped-def]

    other = JQ(jq.url, namespace=jq.namespace, serializer=Packs())
    for number, one in enumerate((jq, other)):
        task = one.job(unique=True, name=f"anything-{number}")(anything)
        same = [task.enqueue(), task.enqueue(None), task.enqueue(value=1), task.enqueue(None, 1)]
        assert len(set(same)) == 1
        same = [
            task.enqueue(x={"a": 1, "b": {"c": 2, "d": 3}}, y=2),
            task.enqueue(y=2, x={"b": {"d": 3, "c": 2}, "a": 1}),
        ]
        assert len(set(same)) == 1
        same = [task.enqueue({1, 2, 3, "a", None}), task.enqueue({"a", None, 3, 2, 1})]
        assert len(set(same)) == 1
        ids = {task.enqueue(given) for given in (0, 1, True, 1.5, "1", b"1", [1], [[1]], {"1": 1}, "", [], {})}
        assert len(ids) == 12
        assert (
            len({task.enqueue(None, 2), task.enqueue(value=2), task.enqueue(None, 2, key=3), task.enqueue(None, 2, 3)})
            == 3
        )
    complexes = other.job(unique=True, name="complex")(anything)
    assert complexes.enqueue(1 + 2j) == complexes.enqueue(1 + 2j) != complexes.enqueue(1 + 3j)


def test_a_function_is_called_as_the_job_is(jq: JQ) -> None:
    @jq.job(unique=lambda shop, **more: shop if more else shop["name"])
    def reindex(shop: Any, depth: int = 3) -> None: ...

    assert reindex.enqueue("x", depth=4).document()["unique"] == "x"
    assert jq.enqueue("bare", 1, unique=lambda number: f"bare-{number}").document()["unique"] == "bare-1"
    with pytest.raises(KeyError):
        reindex.enqueue({})
    for value in (None, 5, b"x", ("a",)):
        with pytest.raises(TypeError, match=r"unique of job reindex: expected its function to return text, got "):
            reindex.enqueue({"name": value})
