"""Arguments and results are of the types that annotations say, or the decorator says why they cannot be."""

from __future__ import annotations

import datetime as dt
import functools
import sqlite3
import threading
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import pydantic
import pytest

import typed_values
from jqmaster import JQ, FollowUp, JobError, Move, ResumeAfter, current_job
from typed_values import ACME, DAY, HOOK, ID, ORDER, VALUES, Account, Customer, Express, Hook, Order, Size

if TYPE_CHECKING:
    from elsewhere import Unseen  # type: ignore[import-not-found]

    Later = dt.date

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
    handles = jq.enqueue_many(calls)
    jq.burst(raises=False)
    results = dict(zip(expected, jq.gather(handles, timeout=60), strict=True))
    for name, value in expected.items():
        for one in (*got[name], results[name]):
            assert (one, type(one)) == (value, type(value)), name


REFUSED: list[tuple[Any, str]] = [
    (uuid.UUID | str, "more than one str-like"),
    (Order | Express, "more than one dataclass"),
    (set[int] | list[int], "more than one array-like"),
    (5, "not supported"),
    ("what a?", "no expression"),
]


@pytest.mark.parametrize(("hint", "reason"), REFUSED, ids=[str(one[0]) for one in REFUSED])
def test_an_annotation_that_cannot_be_honoured_is_refused(hint: Any, reason: str) -> None:
    for place in ("value", "return"):

        def function(value: Any = None) -> Any: ...

        function.__annotations__[place] = hint
        with pytest.raises(TypeError, match=f"^job save: .*{reason}"):
            JQ().job(name="save")(function)


def test_what_is_not_as_annotated_is_refused_where_it_is_given(jq: JQ) -> None:
    def function(one): ...  # type: ignore[no-untyped-def]

    wrong: list[tuple[Any, Any, str]] = [
        (Order, 5, "Expected `object`"), (Size, "xl", "Invalid enum value"), (Order, {"id": str(ID)}, "`price`"),
        (uuid.UUID, None, "Expected `uuid`"), (set[Order], threading.Lock(), "lock cannot be"),
        (Account, {"user_id": 5, "x": 1}, "x: Extra inputs"), (sqlite3.Connection, 5, "nothing is known of Connection"),
        (Hook, {"url": "no", "secret": "hush", "path": "a"}, "url: Input should be a valid URL"),
    ]  # fmt: skip
    for number, (hint, value, problem) in enumerate(wrong):
        function.__annotations__ = {"one": hint}
        task = jq.job(name=f"job-{number}")(functools.partial(function))
        with pytest.raises(TypeError, match=f"^job-{number}.*: one: .*{problem}") as caught:
            task.enqueue(value)
        assert "hush" not in str(caught.value)


def test_what_is_given_as_it_travels_is_made_as_well(jq: JQ) -> None:
    got: list[Any] = []

    @jq.job
    def bill(
        order: Order, account: Account, when: dt.datetime, path: typed_values.Path, days: dict[int, dt.date]
    ) -> None:
        got.append((order, account, when, path, days))

    argument = {
        "order": {"id": str(ID), "price": 1, "sizes": ["l"]},
        "account": {"userId": 5, "in": 3},
        "when": "2030-01-02T00:00:00Z",
        "path": "a",
        "days": {"5": str(DAY)},
    }
    jq.enqueue("bill", argument)
    bill.enqueue(**argument)  # type: ignore[arg-type]
    jq.burst()
    order = Order(ID, Decimal(1), sizes={Size.LARGE})
    account = Account.model_validate({"userId": 5, "in": 3})
    assert got == [(order, account, dt.datetime(2030, 1, 2, tzinfo=dt.UTC), typed_values.Path("a"), {5: DAY})] * 2


def test_results_have_their_types_also_for_those_who_know_no_more_than_ids(jq: JQ) -> None:
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
    async def resumes() -> list[Order]:
        if not current_job.get().depends:
            raise ResumeAfter([order.job(), order.job()])
        return await jq.adependency_results()

    handles: list[Any] = [order.enqueue(), either.enqueue(True), either.enqueue(False), moves.enqueue()]
    handles.append(resumes.enqueue())
    jq.burst(raises=False)
    expected = [ORDER, ACME, ACME, ORDER, [ORDER, ORDER]]
    assert jq.gather(handles, timeout=60) == expected
    tasks: list[Any] = [order, either, either, moves, resumes]
    assert jq.gather([task.handle(job.id) for task, job in zip(tasks, handles, strict=True)]) == expected
    assert order.options(delay=5).handle(handles[0].id).result() == ORDER
    assert jq.handle(handles[0].id).result()["id"] == str(ID)
    with pytest.raises(ValueError, match=f"the result of job {handles[1].id}: Object missing required field `id`"):
        order.handle(handles[1].id).result()


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


class Unfinished(pydantic.BaseModel):
    part: Part


def test_names_that_are_known_later(jq: JQ) -> None:
    got: list[Any] = []

    @jq.job
    def later(day: Later) -> None:
        got.append(day)

    @jq.job
    def builds(it: Unfinished) -> None:
        got.append(it.part.day)

    @jq.job
    def unseen(it: Unseen) -> None: ...

    globals()["Later"] = dt.date
    later.enqueue(DAY)
    builds.enqueue(Unfinished(part=Part(day=DAY)))
    with pytest.raises(ValueError, match=r"job unseen: name 'Unseen' is not defined; have its module know it"):
        jq.worker()
    del jq.tasks["unseen"]
    jq.burst()
    assert got == [DAY, DAY]


class Part(pydantic.BaseModel):
    day: dt.date
