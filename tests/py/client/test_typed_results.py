"""Results are of their functions' types also for those who know no more than ids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app_support import jq
from jqmaster import JQ, JobError, Move, NoResult, ResumeAfter, current_job
from typed_values import ACME, ID, ORDER, Customer, Order

__all__ = ["jq"]


class Shop:
    def __init__(self, jq: JQ) -> None:
        self.seen: list[Any] = []

        @jq.job
        def order(fails: bool = False) -> Order:
            if fails:
                raise ValueError("sold out")
            return ORDER

        @jq.job
        async def customer() -> Customer:
            return ACME

        @jq.job
        def nothing() -> None: ...

        @jq.job
        def moves() -> Move[Order]:
            return Move("order", {}, queue="order")

        @jq.job
        def looks(how: str) -> Customer:
            match how:
                case "untyped":
                    self.seen = jq.dependency_results()
                case "errors":
                    self.seen = jq.dependency_results(return_errors=True)
                case "named":
                    self.seen = list(jq.dependency_results(Order))
                case _:
                    self.seen = list(jq.dependency_results(Order, return_errors=True))
            return ACME

        @jq.job
        async def resumes() -> list[Order]:
            if not current_job.get().depends:
                raise ResumeAfter([order.job(), order.job()])
            return await jq.adependency_results(Order)

        self.order, self.customer, self.nothing, self.moves = order, customer, nothing, moves
        self.looks, self.resumes = looks, resumes


@pytest.fixture
def shop(jq: JQ) -> Shop:
    jq.defaults["max_retry"] = 0
    return Shop(jq)


def test_a_task_knows_the_type_of_a_result_by_its_id(jq: JQ, shop: Shop) -> None:
    tasks: list[Any] = [shop.order, shop.customer, shop.moves, shop.nothing, shop.resumes]
    ids = [task.enqueue().id for task in tasks]
    jq.burst()
    handles = [task.handle(job_id) for task, job_id in zip(tasks, ids, strict=True)]
    assert jq.gather(handles, timeout=60) == [ORDER, ACME, ORDER, None, [ORDER, ORDER]]
    assert shop.order.options(delay=5).handle(ids[0]).result() == ORDER
    assert jq.handle(ids[0]).result()["id"] == str(ID)
    with pytest.raises(ValueError, match=f"the result of job {ids[1]}: Object missing required field `id`"):
        shop.order.handle(ids[1]).result()
    with jq.immediate():
        assert shop.order.handle(shop.order.enqueue().id).result() == ORDER


def test_dependency_results_are_of_their_types(jq: JQ, shop: Shop) -> None:
    two = [shop.order.enqueue(), shop.customer.enqueue()]
    shop.looks.options(depends=two).enqueue("untyped")
    jq.burst()
    assert shop.seen == [ORDER, ACME]
    shop.looks.options(depends=two[:1]).enqueue("named")
    jq.burst()
    assert shop.seen == [ORDER]
    with jq.immediate():
        shop.looks.options(depends=[shop.customer.enqueue()]).enqueue("untyped")
        assert shop.seen == [ACME]
    wrong = shop.looks.options(depends=two).enqueue("named")
    lacking = shop.looks.options(depends=[shop.nothing.enqueue()]).enqueue("untyped")
    jq.burst(raises=False)
    with pytest.raises(JobError, match=f"ValueError: the result of job {two[1].id}: "):
        wrong.result(timeout=60)
    with pytest.raises(JobError, match="NoResult: "):
        lacking.result(timeout=60)


@pytest.mark.parametrize("how", ["errors", "both"])
def test_errors_stand_among_them(jq: JQ, shop: Shop, how: str) -> None:
    parts = [shop.order.job(), shop.order.job(True), shop.nothing.job()]
    jq.enqueue_many([*parts, shop.looks.options(depends=parts, if_failed="run").job(how)])
    jq.burst(raises=False)
    first, failed, none = shop.seen
    assert first == ORDER and isinstance(failed, JobError) and isinstance(none, NoResult)


def test_a_flow_is_had_again_from_its_ids(jq: JQ, shop: Shop) -> None:
    flows: list[Any] = [
        jq.chord([shop.order.job(), shop.customer.job()], shop.looks.job("untyped"), failed=shop.nothing.job()),
        jq.group([shop.order.job(), shop.order.job()], done=shop.nothing.job()),
        jq.chain(shop.nothing.job(), [shop.order.job()], jq.new_job("order")),
    ]
    again = [jq.flow(json.loads(json.dumps(flow.ids))) for flow in flows]
    assert [(one.jobs, one.callbacks, one.ids) for one in again] == [
        (one.jobs, one.callbacks, one.ids) for one in flows
    ]
    assert again[0].progress().total == 3
    jq.burst(raises=False)
    assert [flow.result(timeout=60) for flow in again] == [ACME, [ORDER, ORDER], ORDER]
    assert again[1].progress() == flows[1].progress()
    assert again[0].cancel() == 0
