"""Arguments of a call become a job's argument, and the other way round."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jqmaster import JQ, checkpoint
from jqmaster.client.calling import MessagePack, Signature


@pytest.mark.parametrize("fits", [True, False])
def test_what_fits_a_signature(fits: bool) -> None:
    def function(a: int, /, b: int = 0, *rest: int, c: int, **more: int) -> None: ...

    signature = Signature(function)
    if fits:
        value = signature.encode((1, 2, 3), {"c": 4, "d": 5})
        assert value == {"*": [1, 2, 3], "c": 4, "d": 5}
        assert signature.decode(value) == ((1, 2, 3), {"c": 4, "d": 5})
    else:
        for bad in (None, [1], {"a": 1, "c": 2}, {"*": 1}, {1: 2}):
            with pytest.raises(TypeError):
                args, kwargs = signature.decode(bad)
                function(*args, **kwargs)  # Python 3.13.0 finds out here that `a` by its name is none


def plain(a: Any, b: Any = 1, *, c: Any = 2) -> Any:
    return (a, b, c)


def positional(a: Any, /, b: Any = 1, *rest: Any, c: Any = 2) -> Any:
    return (a, b, rest, c)


def spread(a: Any = 0, **more: Any) -> Any:
    return (a, more)


def nothing() -> Any:
    return None


VALUES = st.none() | st.integers(-9, 9) | st.text(max_size=3) | st.lists(st.integers(0, 9), max_size=2)


@given(
    function=st.sampled_from([plain, positional, spread, nothing]),
    args=st.lists(VALUES, max_size=4),
    kwargs=st.dictionaries(st.sampled_from(["a", "b", "c", "d", "*"]), VALUES, max_size=3),
)
def test_what_was_called_is_what_is_called(function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Either the call is refused, as Python refuses it, or the function gets the same arguments."""
    signature, serializer = Signature(function), MessagePack()
    try:
        expected = function(*args, **kwargs)
    except TypeError:
        expected = TypeError
    if expected is TypeError or "*" in kwargs:
        with pytest.raises(TypeError):
            signature.encode(tuple(args), kwargs)
        return
    packed = serializer.dumps(signature.encode(tuple(args), kwargs))
    args_, kwargs_ = signature.decode(serializer.loads(packed))
    assert function(*args_, **kwargs_) == expected


@given(value=VALUES | st.dictionaries(st.sampled_from(["a", "b", "*", "x"]), VALUES, max_size=2))
def test_whatever_comes_is_a_call_or_refused(value: Any) -> None:
    signature = Signature(plain)
    try:
        args, kwargs = signature.decode(value)
    except TypeError:
        return
    plain(*args, **kwargs)


def test_a_map_with_tuples_as_keys_can_be_read() -> None:
    """Nothing refuses it where nothing is annotated: so it must not break who reads a result, or a list of jobs."""
    serializer = MessagePack()
    for value in ({(1, 2): 3}, {((1,), "a"): [{(): None}]}, {1: 2, None: 3}):
        assert serializer.loads(serializer.dumps(value)) == value
    assert serializer.loads(b"\x81\x81\x01\x02\x03") == {((1, 2),): 3}  # a map as a key
    with pytest.raises(ValueError):
        serializer.loads(b"\xc1")


def test_a_checkpoint_is_packed_as_arguments_are(redis_url: str, namespace: str) -> None:
    jq = JQ(redis_url, namespace=namespace, serializer=MessagePack(default=sorted))

    @jq.job(retry_base=0)
    def adds_up(numbers: list[int]) -> int:
        if len(numbers) == 1:
            checkpoint({"numbers": {2, *numbers}})
            raise ConnectionError("away")
        return sum(numbers)

    handle = adds_up.enqueue({1})
    jq.burst()
    assert handle.result(timeout=60) == 3
