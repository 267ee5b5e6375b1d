"""Arguments and results are of the types that annotations say."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import threading
import uuid
from decimal import Decimal
from typing import Any, Literal

import pydantic
import pytest

from jqmaster import JQ, FollowUp, JobError


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


@dataclasses.dataclass
class Order:
    id: uuid.UUID
    price: Decimal
    due: dt.date | None = None
    sizes: set[Size] = dataclasses.field(default_factory=set)


class Customer(pydantic.BaseModel):
    name: str
    since: dt.date
    orders: list[Order] = []


ORDER = Order(uuid.UUID(int=7), Decimal("9.90"), dt.date(2030, 1, 2), {Size.LARGE})
ACME = Customer(name="acme", since=dt.date(2020, 5, 6), orders=[ORDER])
VALUES: list[tuple[str, Any]] = [
    ("uuid.UUID", ORDER.id), ("Decimal", Decimal("0.10")), ("dt.date", dt.date(2030, 1, 2)), ("dt.time", dt.time(3, 4)),
    ("dt.timedelta", dt.timedelta(days=1, seconds=5)), ("Size", Size.SMALL), ("Order", ORDER), ("Customer", ACME),
    ("list[Order]", [ORDER]), ("dict[str, Customer]", {"a": ACME}), ("Order | None", None), ("Order | None", ORDER),
    ("tuple[int, Size]", (1, Size.LARGE)), ("set[uuid.UUID]", {ORDER.id}), ("dict[uuid.UUID, int]", {ORDER.id: 1}),
    ("Literal['a']", "a"), ("bytes", b"\xff"), ("dt.datetime", dt.datetime(2030, 1, 2, tzinfo=dt.UTC)),
    ("list[int]", [1]),
]  # fmt: skip


@pytest.fixture
def jq(redis_url: str, namespace: str) -> JQ:
    return JQ(redis_url, namespace=namespace, max_retry=0)


@pytest.mark.parametrize(("annotation", "value"), VALUES, ids=[f"{one[0]}-{n}" for n, one in enumerate(VALUES)])
def test_a_value_arrives_as_what_it_was(jq: JQ, annotation: str, value: Any) -> None:
    got: list[Any] = []

    def function(first, /, named, *rest, only, **more):  # type: ignore[no-untyped-def]
        got.extend([first, named, *rest, only, more["x"]])
        return first

    function.__annotations__ = dict.fromkeys(("first", "named", "rest", "only", "more", "return"), annotation)
    task = jq.job(function)
    handle = task.enqueue(value, value, value, only=value, x=value)
    jq.burst()
    assert (got, handle.result(timeout=60)) == ([value] * 5, value)
    assert type(got[0]) is type(value)
    with jq.immediate():
        assert task.enqueue(value, value, value, only=value, x=value).result() == value


def test_results_of_what_says_more_have_their_type_too(jq: JQ) -> None:
    @jq.job
    def order() -> FollowUp[Order]:
        return FollowUp(ORDER, [])

    @jq.job
    async def orders() -> list[Order]:
        return [ORDER]

    handles: list[Any] = [order.enqueue(), orders.enqueue()]
    jq.burst()
    assert jq.gather(handles) == [ORDER, [ORDER]]


def test_what_does_not_fit_names_its_parameter(jq: JQ) -> None:
    @jq.job
    def bill(order: Order, size: Size = Size.SMALL) -> None: ...

    for argument, name in (({"order": {"id": "x", "price": "1"}}, "order"), ({"order": ORDER, "size": "xl"}, "size")):
        handle = jq.enqueue(bill.name, argument)
        jq.burst(raises=False)
        with pytest.raises(JobError, match=f"{name}: "):
            handle.result(timeout=60)
        assert handle.document()["attempt"] == 1
    with pytest.raises(TypeError, match=r"bill: size: Lock cannot be packed|bill: size: lock cannot be packed"):
        bill.enqueue(ORDER, threading.Lock())  # type: ignore[arg-type]


def test_what_cannot_be_told_apart_arrives_as_it_travels(jq: JQ) -> None:
    got: list[Any] = []

    @jq.job
    def either(id: uuid.UUID | str, kind: Unknown, other=None) -> None:  # type: ignore[no-untyped-def] # noqa: F821
        got.extend([id, kind, other])

    either.enqueue(ORDER.id, Size.LARGE, other=ORDER.price)
    jq.burst()
    assert got == [str(ORDER.id), "l", "9.90"]
    assert Literal  # what an annotation above names
