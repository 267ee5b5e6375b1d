"""Arguments and results are of the types that annotations say, or the decorator says why they cannot be."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import functools
import logging
import sqlite3
import threading
import typing
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pydantic
import pytest

import typed_values
from app_support import working
from jqmaster import JQ, FollowUp, JobError, MessagePack, Move
from typed_values import ACME, DAY, HOOK, ID, ORDER, VALUES, Account, Checked, Customer, Express, Hook, Order, Size

if TYPE_CHECKING:
    from elsewhere import Unseen  # type: ignore[import-not-found]

T = TypeVar("T")


@pytest.fixture
def jq(redis_url: str, namespace: str) -> JQ:
    return JQ(redis_url, namespace=namespace, max_retry=0, queue="typed")


def test_values_arrive_as_what_they_were(jq: JQ) -> None:
    """In each place that a parameter can have, and as a result; of plain functions and of async ones."""
    got: dict[str, list[Any]] = {}
    expected: dict[str, Any] = {}
    calls = []
    for number, (hint, value) in enumerate(VALUES):

        def function(first, /, named, *rest, only, name, **more):  # type: ignore[no-untyped-def]
            got[name] = [first, named, *rest, only, more["x"]]
            return first

        async def coroutine(*, one, name):  # type: ignore[no-untyped-def]
            got[name] = [one]
            return one

        function.__annotations__ = dict.fromkeys(("first", "named", "rest", "only", "more", "return"), hint)
        coroutine.__annotations__ = {"one": hint, "return": hint}
        kinds = f"plain-{number}", f"async-{number}"
        expected |= dict.fromkeys(kinds, value)
        task = jq.job(function, name=kinds[0], keep_result=True)  # type: ignore[call-overload]
        calls.append(task.job(value, value, value, only=value, name=kinds[0], x=value))
        waits = jq.job(coroutine, name=kinds[1], keep_result=True)  # type: ignore[call-overload]
        calls.append(waits.job(one=value, name=kinds[1]))
        with jq.immediate():
            assert task.enqueue(value, value, value, only=value, name="", x=value).result() == value
    handles = jq.enqueue_many(calls)
    jq.burst(raises=False)
    results = dict(zip(expected, jq.gather(handles, timeout=60), strict=True))
    for name, value in expected.items():
        for one in (*got[name], results[name]):
            assert (one, type(one)) == (value, type(value)), name


REFUSED: list[tuple[Any, str]] = [
    (sqlite3.Connection, "nothing is known of Connection"), (Callable[[int], int], "nothing that could travel"),
    (typing.TextIO, "nothing is known of TextIO"), (uuid.UUID | str, "more than one str-like"),
    (dt.datetime | str, "more than one str-like"),
    (Order | Express, "more than one dataclass"), (Order | dict[str, int], "more than one dict-like"),
    (set[int] | list[int], "more than one array-like"), (T, "type variable"), (dict[str, list[T]], "type variable"),
    (typing.SupportsInt, "nothing is known of SupportsInt"), (Iterator[int], "nothing that could travel"),
    (AsyncIterator[int], "nothing that could travel"), (type[Order], "nothing that could travel"),
    (enum.Enum("Planet", {"EARTH": (1, 2)}), "values of tuple"), (Literal[Size.LARGE], "annotate Size"),
    (dict[tuple[int, int], int], "keys of maps cannot be of tuple"), (5, "not supported"), ("what a?", "expression"),
    (type("Text", (str,), {}), "nothing is known of Text"), (Awaitable[sqlite3.Connection], "Connection"),
    (dataclasses.make_dataclass("Held", [("it", sqlite3.Connection)]), "nothing is known of Connection"),
    (list[dataclasses.make_dataclass("Held", [("it", Callable[..., int])])], "could travel"),  # type: ignore[misc]
]  # fmt: skip


@pytest.mark.parametrize(("hint", "reason"), REFUSED, ids=[str(one[0]) for one in REFUSED])
def test_an_annotation_that_cannot_be_honoured_is_refused(hint: Any, reason: str) -> None:
    for place, about in (("value", "parameter value"), ("rest", "parameter rest"), ("return", "its result")):

        def function(value: Any = None, *rest: Any) -> Any: ...

        function.__annotations__[place] = hint
        with pytest.raises(TypeError, match=f"^job save: {about}: .*{reason}"):
            JQ().job(name="save")(function)
        pickles = MessagePack(default=repr)  # who packs more may know what to do with it
        JQ(serializer=pickles).job(name="save")(function)


def test_what_would_arrive_as_something_else_is_refused_where_it_is_said(jq: JQ) -> None:
    class Vip(Customer):
        level: int = 1

    class Named(typed_values.Strict):
        name: str = ""

    def function(one): ...  # type: ignore[no-untyped-def]

    wrong: list[tuple[Any, Any, str]] = [
        (Order, Express(ID, Decimal(1)), "Express would arrive as Order"), (Order, 5, "Expected `object`"),
        (list[Order], [ORDER, Express(ID, Decimal(1))], "Express would arrive"), (Size, "xl", "Invalid enum value"),
        (Customer, Vip(name="a", since=DAY), "Vip would arrive as Customer"), (Order, {"id": str(ID)}, "`price`"),
        (set[typed_values.Strict], {Named(day=DAY, kind=typed_values.Kind.A, pair=(1, ID))}, "Named would arrive"),
        (dict[str, Customer], {"a": Vip(name="a", since=DAY)}, "Vip would"), (uuid.UUID, None, "Expected `uuid`"),
        (typed_values.Row, {"day": DAY, "extra": 1}, "no extra"), (set[Order], threading.Lock(), "lock cannot be"),
        (Account, {"user_id": 5, "x": 1}, "x: Extra inputs"), (Checked, {"count": 0}, "count: Input should be greater"),
        (Hook, {"url": "no", "secret": "hush", "path": "a"}, "url: Input should be a valid URL"),
    ]  # fmt: skip
    for number, (hint, value, problem) in enumerate(wrong):
        function.__annotations__ = {"one": hint}
        task = jq.job(name=f"job-{number}")(functools.partial(function))
        with pytest.raises(TypeError, match=f"^job-{number}: one: .*{problem}") as caught:
            task.enqueue(value)
        assert "hush" not in str(caught.value)


@dataclasses.dataclass(eq=False)
class Sized:
    size: Size


def test_what_never_equals_another_is_sent_as_well(jq: JQ) -> None:
    @jq.job
    def measure(sized: Sized, price: Decimal) -> None: ...

    assert MessagePack().loads(measure.job(Sized(Size.LARGE), Decimal("nan")).argument)["price"] == "NaN"


def test_what_is_given_as_it_travels_is_made_as_well(jq: JQ) -> None:
    got: list[Any] = []

    @jq.job
    def bill(
        order: Order, account: Account, when: dt.datetime, path: typed_values.Path, days: dict[int, dt.date]
    ) -> None:
        got.append((order, account, when, path, days))

    plain = {"id": str(ID), "price": 1, "sizes": ["l"]}
    given = {
        "order": plain,
        "account": {"userId": 5, "in": 3},
        "when": "2030-01-02T00:00:00Z",
        "path": "a",
        "days": {"5": str(DAY)},
    }
    jq.enqueue("bill", given)
    bill.enqueue(**given)  # type: ignore[arg-type]
    jq.burst()
    order = Order(ID, Decimal(1), sizes={Size.LARGE})
    account = Account.model_validate({"userId": 5, "in": 3})
    assert got == [(order, account, dt.datetime(2030, 1, 2, tzinfo=dt.UTC), typed_values.Path("a"), {5: DAY})] * 2


def test_results_of_what_says_more_have_their_type_too(jq: JQ) -> None:
    @jq.job
    def order() -> FollowUp[Order]:
        return FollowUp(ORDER, [])

    @jq.job
    async def either(more: bool) -> Customer | FollowUp[Customer]:
        return FollowUp(ACME, []) if more else ACME

    @jq.job
    def moves() -> Move[Order]:
        return Move("takes", {"order": ORDER, "hook": HOOK}, queue="typed")

    @jq.job
    def takes(order: Order, hook: Hook) -> Order:
        return order if hook == HOOK else Order(ID, Decimal())

    @jq.job
    def wrong() -> Order:
        return Express(ID, Decimal(1))

    def run() -> list[Any]:
        return [order.enqueue(), either.enqueue(True), either.enqueue(False)]

    handles = [*run(), moves.enqueue(), wrong.enqueue()]
    jq.burst(raises=False)
    *results, failed = jq.gather(handles, return_errors=True, timeout=60)
    assert results == [ORDER, ACME, ACME, ORDER]
    assert "the result of wrong cannot be packed: Express would arrive as Order" in str(failed)
    with jq.immediate():
        assert jq.gather(run()) == [ORDER, ACME, ACME]


def test_methods_and_wrappers_have_types_too(jq: JQ) -> None:
    class Shop:
        def sell(self, order: Order) -> Order:
            return order

        def __call__(self, order: Order) -> Order:
            return order

    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            logging.getLogger(__name__).debug("called")
            return function(*args, **kwargs)

        return wrapper

    @logged
    async def waits(order: Order) -> Order:
        return order

    def two(first: int, order: Order = ORDER, *, none: Order = None) -> Order:  # type: ignore[assignment]
        return none or order

    tasks = [jq.job(name=str(number))(one) for number, one in enumerate(
        (Shop().sell, Shop(), functools.partial(two, 1), staticmethod(two).__func__ and functools.partial(two, first=1))
    )]  # fmt: skip
    handles = [task.enqueue(order=ORDER) for task in tasks] + [tasks[2].enqueue(none=None)]
    jq.burst()
    assert jq.gather(handles, timeout=60) == [ORDER] * 5


def test_what_does_not_fit_names_its_parameter(jq: JQ) -> None:
    @jq.job
    def bill(order: Order, size: Size = Size.SMALL, hook: Hook | None = None) -> None: ...

    bad = {"order": {"id": "x", "price": "1"}}, {"order": ORDER, "size": "xl"}, {"order": ORDER, "hook": {"url": 1}}
    for argument, name in zip(bad, ("order", "size", "hook"), strict=True):
        handle = jq.enqueue(bill.name, argument)
        jq.burst(raises=False)
        with pytest.raises(JobError, match=f": {name}: "):
            handle.result(timeout=60)
        assert handle.document()["attempt"] == 1


def test_names_that_are_known_later(jq: JQ) -> None:
    got: list[Any] = []

    @jq.job
    def later(day: Later) -> None:
        got.append(day)

    @jq.job
    def local(here: Here | None = None, *, plain: list[Here]) -> None:
        got.append(plain)

    globals()["Later"] = dt.date
    later.enqueue(DAY)

    @dataclasses.dataclass
    class Here:
        day: dt.date

    @jq.job
    def knows(here: Here) -> None:
        got.append(here)

    knows.enqueue(Here(DAY))
    with pytest.raises(TypeError, match=r"^local: parameter plain: name 'Here' is not defined; have its module"):
        local.enqueue(plain=[])
    del jq.tasks["local"]

    class Unfinished(pydantic.BaseModel):
        part: Part

    @jq.job
    def builds(it: Unfinished) -> None:
        got.append(it.part.day)

    class Part(pydantic.BaseModel):
        day: dt.date

    with pytest.raises(TypeError, match=r"parameter it: .*Unfinished names what is not defined"):
        builds.enqueue({})  # type: ignore[arg-type]
    Unfinished.model_rebuild()
    builds.enqueue(Unfinished(part=Part(day=DAY)))
    jq.burst()
    assert sorted(got, key=str) == sorted([DAY, DAY, Here(DAY)], key=str)


def test_a_worker_does_not_start_with_names_that_are_never_known(jq: JQ) -> None:
    @jq.job
    def unseen(it: Unseen) -> None: ...

    with pytest.raises(ValueError, match=r"job unseen: parameter it: name 'Unseen' is not defined; have its module"):
        jq.worker().options()
    other = JQ(serializer=MessagePack(default=repr), direct=True)  # which may know what to do with it
    assert other.job(unseen.function).enqueue(1).result() is None


if TYPE_CHECKING:
    Later = dt.date


def test_what_nobody_annotated_arrives_as_it_travels(jq: JQ) -> None:
    got: list[Any] = []

    @jq.job
    def either(id: Any, kind: object, other=None, *more, **named: Any | int) -> None:  # type: ignore[no-untyped-def]
        got.extend([id, kind, other, *more, *named.values()])

    either.enqueue(ORDER.id, Size.LARGE, ORDER.price, dt.datetime(2030, 1, 2), DAY, hook=HOOK, secret=HOOK.secret)
    jq.burst()
    hook = got.pop(5)
    assert got == [str(ID), "l", "9.90", "2030-01-02T00:00:00", "2030-01-02", "s3cret"]
    assert (hook["url"], hook["secret"], hook["data"], hook["counts"]) == (
        "https://example.org/a",
        "s3cret",
        b"\xff",
        {5: "1.10"},
    )


def test_through_a_process(redis_url: str, namespace: str) -> None:
    import process_jobs

    with process_jobs.typed.using(redis_url, namespace):
        handles: list[Any] = [process_jobs.whole.enqueue(ORDER, ACME, {DAY}), process_jobs.bad.enqueue()]
        process_jobs.typed.burst(raises=False)
        result, failed = process_jobs.typed.gather(handles, timeout=60, return_errors=True)
    assert result == process_jobs.Whole(ORDER, ACME, frozenset({DAY}))
    assert "cannot be packed: Express would arrive as Order" in str(failed)


@pytest.mark.parametrize("options", [{}, {"serializer": MessagePack(default=str)}])
def test_another_serializer_changes_nothing(redis_url: str, namespace: str, options: Any) -> None:
    jq = JQ(redis_url, namespace=namespace, **options)

    @jq.job
    def twice(order: Order, kind: typed_values.Kind) -> tuple[Order, typed_values.Kind]:
        return order, kind

    with working(jq):
        assert twice.enqueue(ORDER, typed_values.Kind.OTHER).result(timeout=60) == (ORDER, typed_values.Kind.OTHER)


def test_plain_types_need_no_adapters() -> None:
    @JQ().job
    def plain(a: int, b: list[str], c: dict[str, Any] | None = None, *d: float, **e: Iterable[bytes]) -> dict[str, int]:
        return {}

    assert plain.signature is not None
    assert plain.signature.types == ({}, None)
