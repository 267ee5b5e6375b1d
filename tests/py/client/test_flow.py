"""Fan out and in: chains and groups; jobs that run again when others have ended."""

from __future__ import annotations

import pytest

from app_support import jq, working
from jqmaster import JQ, JobCancelled, JobError, JobSkipped
from jqmaster.errors import Invalid

__all__ = ["jq"]


class Functions:
    """Some jobs, and what they did."""

    def __init__(self, jq: JQ) -> None:
        self.told: list[object] = []

        @jq.job
        def add(a: int, b: int) -> int:
            return a + b

        @jq.job(max_retry=0)
        async def total() -> int:
            return sum(await jq.adependency_results())

        @jq.job(max_retry=0)
        def fail(message: str) -> int:
            raise ValueError(message)

        @jq.job
        def tell(what: str) -> None:
            self.told.append((what, [str(one) for one in jq.dependency_results(return_errors=True)]))

        self.add, self.total, self.fail, self.tell = add, total, fail, tell


def test_a_group_has_the_results_of_all(jq: JQ) -> None:
    does = Functions(jq)
    group = jq.group((does.add.job(n, 1) for n in range(3)), failed=does.tell.job("one failed"))
    assert group.progress() == {"queued": 3}
    jq.burst(concurrency=1)
    assert group.result(timeout=60) == [1, 2, 3]
    assert group.progress() == {"done": 3}
    assert does.told == []
    [failed] = group.callbacks
    assert failed.join(timeout=60) == "skipped"
    assert failed.document()["attempt"] == 0
    with pytest.raises(JobCancelled, match=f"job {failed.id} was not needed") as caught:
        failed.result(timeout=60)
    assert type(caught.value) is JobSkipped
    [queue] = [one for one in jq.each("queues") if one["name"] == "tell"]
    assert (queue["done"], queue["cancelled"], queue["skipped"]) == (0, 0, 1)


def test_one_that_fails_is_told_once_all_have_ended(jq: JQ) -> None:
    does = Functions(jq)
    parts = [does.add.job(1, 1), does.fail.job("broken"), does.add.options(delay=3).job(2, 2)]
    group = jq.group(parts, failed=does.tell.job("one failed"))
    jq.burst(raises=False)
    assert does.told == []
    jq.burst(raises=False, delayed=True)
    [(what, results)] = does.told
    assert (what, results[0], results[2]) == ("one failed", "2", "4")
    assert "ValueError: broken" in results[1]
    assert group.progress() == {"done": 2, "error": 1}
    with pytest.raises(JobError, match="broken"):
        group.result(timeout=60)


def test_a_chain_passes_results_on_from_step_to_step(jq: JQ) -> None:
    does = Functions(jq)
    twice = does.total.job()  # a call may be used for several jobs
    chain = jq.chain(does.add.job(1, 2), [twice, twice], does.total.options(if_failed="run").job())
    jq.burst()
    assert chain.result(timeout=60) == 6
    assert len({one.id for one in chain.jobs}) == 4
    assert chain.jobs[-1].document()["if_failed"] == "run"


def test_what_a_call_depends_on_by_itself_comes_first(jq: JQ) -> None:
    does = Functions(jq)
    before = does.add.enqueue(10, 0)
    first = does.add.job(1, 0)
    chain = jq.chain(first, does.add.job(2, 0), does.total.options(depends=[before, first]).job())
    jq.burst()
    assert chain.result(timeout=60) == 13
    assert chain.jobs[2].document()["depends"] == [before.id, chain.jobs[0].id, chain.jobs[1].id]


def test_a_chain_tells_what_failed_first(jq: JQ) -> None:
    does = Functions(jq)
    chain = jq.chain(does.add.job(1, 2), does.fail.job("broken"), does.total.job(), failed=does.tell.job("failed"))
    jq.burst(raises=False)
    with pytest.raises(JobError, match="broken") as caught:
        chain.result(timeout=60)
    assert (caught.value.job_id, caught.value.error["type"]) == (chain.jobs[1].id, "ValueError")
    assert chain.progress() == {"done": 1, "error": 2}
    assert [what for what, _ in does.told] == ["failed"]
    cancelled = jq.chain(does.add.options(delay=60).job(1, 2), does.total.job())
    cancelled.jobs[0].cancel()
    jq.burst(raises=False)
    with pytest.raises(JobCancelled, match=cancelled.jobs[0].id):
        cancelled.result(timeout=60)


def test_a_flow_is_cancelled_as_a_whole(jq: JQ) -> None:
    does = Functions(jq)
    chain = jq.chain([does.add.job(1, 1), does.add.job(2, 2)], does.total.job(), failed=does.tell.job("failed"))
    assert chain.cancel() == 4
    assert chain.progress() == {"cancelled": 3}
    assert chain.cancel() == 0
    jq.burst()
    assert does.told == []
    with pytest.raises(JobCancelled):
        chain.result(timeout=60)


def test_all_is_enqueued_or_nothing(jq: JQ) -> None:
    does = Functions(jq)
    with pytest.raises(Invalid, match=r"jobs\[1\]"):
        jq.chain([does.add.job(1, 1), does.add.options(queue="*").job(2, 2)], does.total.job())
    one = does.add.job(1, 1)
    for steps in ([[one] * 10_050, does.total.job()], [one] * 10_051, [[one] * 500, [one] * 500, does.total.job()]):
        with pytest.raises(ValueError, match=r"at most 10,050 jobs, which depend on 100,000 others"):
            jq.chain(*steps)
    assert [one for one in jq.each("queues") if one["queued"]] == []
    assert jq.chain([does.add.job(1, 1)] * 99, does.total.job(), failed=does.tell.job("failed")).cancel() == 101
    calls = [does.add.job(n, n) for n in range(2)]
    first, again = (jq.group(calls, request="the same") for _ in range(2))
    assert first.jobs == again.jobs


def test_a_flow_of_very_many(jq: JQ) -> None:
    does = Functions(jq)
    calls = [does.add.job(n, 0) for n in range(2500)]
    first, again = (
        jq.chain(calls, does.total.job(), failed=does.tell.job("failed"), request="the same") for _ in range(2)
    )
    assert [one.id for one in (*first.jobs, *first.callbacks)] == [one.id for one in (*again.jobs, *again.callbacks)]
    with working(jq, concurrency=100):
        assert first.result(timeout=300) == sum(range(2500))
    assert (first.progress(), first.callbacks[0].join(timeout=60)) == ({"done": 2501}, "skipped")
    assert jq.chain(calls, does.total.job(), failed=does.tell.job("failed")).cancel() == 2502


# -- a job that runs again when others have ended ----------------------------------------------------------------
