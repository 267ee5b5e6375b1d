"""Arguments of a call become a job's argument, and the other way round."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jqmaster.client.calling import MessagePack, Signature


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
    kwargs=st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), VALUES, max_size=3),
)
def test_what_was_called_is_what_is_called(function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Either the call is refused, as Python refuses it, or the function gets the same arguments."""
    signature, serializer = Signature(function), MessagePack()
    try:
        expected = function(*args, **kwargs)
    except TypeError:
        expected = TypeError
    if expected is TypeError:
        with pytest.raises(TypeError):
            signature.encode(tuple(args), kwargs)
        return
    packed = serializer.dumps(signature.encode(tuple(args), kwargs))
    args_, kwargs_ = signature.decode(serializer.loads(packed))
    assert function(*args_, **kwargs_) == expected


@dataclasses.dataclass
class Node:
    next: Node | None = None


def test_what_holds_itself_is_refused_as_all_that_cannot_be_packed() -> None:
    node = Node()
    node.next = node
    for value in (node, {"in": [node]}):
        with pytest.raises(ValueError, match="holds itself"):
            MessagePack().dumps(value)


@pytest.mark.parametrize("packed", [b"\x81\x81\x01\x02\x03", msgpack.packb(msgpack.Timestamp(1 << 40)), b"\xc1", b""])
def test_what_others_packed_and_python_has_not_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        MessagePack().loads(packed)
