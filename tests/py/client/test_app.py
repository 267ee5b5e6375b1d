"""`JQ` in plain code: define, enqueue, wait, look; by the scripts and by a master."""

from __future__ import annotations

import asyncio
import datetime
import time

import pytest

from app_support import jq, working
from jqmaster import JQ, JobCancelled, NoResult
from jqmaster.errors import Conflict, Invalid, Unavailable

__all__ = ["jq"]


def test_arguments_that_do_not_fit_are_refused_at_once(jq: JQ) -> None:
    @jq.job
    def add(a: int, b: int) -> int:
        return a + b

    with pytest.raises(TypeError, match="missing a required argument: 'b'"):
        add.enqueue(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^add\(a: 'int', b.*: missing .*: 'a'"):
        add.enqueue(b=1, c=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="add: an integer has more than 64 bits"):
        add.enqueue(1, 2**64)
    with pytest.raises(TypeError, match=r"no such option of job add: prio\b"):
        add.options(prio=3)  # type: ignore[call-arg]


def test_options_go_with_the_job(jq: JQ) -> None:
    @jq.job(queue="mail", priority=1, max_retry=3, timeout=60, tags=["x"])
    def mail(to: str) -> str:
        return to

    first = mail.options(priority=-1, delay=datetime.timedelta(minutes=5)).enqueue("a")
    document = first.document()
    expected = {"queue": "mail", "priority": -1, "max_retry": 3, "timeout": 60, "tags": ["x"]}
    assert {name: document[name] for name in expected} == expected
    assert first.status() == "scheduled"
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    later = mail.options(run_at=moment, depends=[first]).enqueue("b")
    assert (later.status(), later.document()["depends"]) == ("blocked", [first.id])
    with pytest.raises(ValueError, match="has no time zone"):
        mail.options(run_at=datetime.datetime(2030, 1, 1)).enqueue("c")
    with pytest.raises(Invalid, match="queue: expected"):
        mail.options(queue="*").enqueue("c")


def test_a_cancelled_job_has_no_result(jq: JQ) -> None:
    @jq.job
    def add(a: int) -> int:
        return a

    handle = add.enqueue(1)
    assert jq.operations.explain(handle.id)["status"] == "queued"
    assert handle.cancel() is True
    assert handle.cancel() is False
    with pytest.raises(JobCancelled):
        handle.result(timeout=60)
    handle.retry()
    assert handle.status() == "queued"
    with pytest.raises(Conflict):
        handle.retry()
    assert jq.call("cancel", [handle.id, "0687f92dba3c00"]) == ["queued", "NOTFOUND"]


def test_waiting_ends_when_the_time_is_up(jq: JQ) -> None:
    handle = jq.enqueue("nobody")
    with pytest.raises(TimeoutError, match=r"has not ended within 0.05 s"):
        handle.result(timeout=0.05)
    with pytest.raises(TimeoutError):
        handle.join(timeout=0)
    with pytest.raises(TimeoutError):
        jq.gather([handle, handle], timeout=0.05)


def test_functions_without_a_result_keep_none(jq: JQ) -> None:
    @jq.job
    def nothing() -> None: ...

    @jq.job(keep_result=False)
    def dropped() -> int:
        return 1

    with working(jq):
        assert nothing.enqueue().result(timeout=60) is None
        with pytest.raises(NoResult) as caught:
            dropped.enqueue().result(timeout=60)
        assert caught.value.reason == "none"


def test_a_result_that_is_gone_is_told_from_none_and_from_nil(jq: JQ) -> None:
    @jq.job(keep_result=True)
    def nothing() -> int | None:
        return None

    jq.operations.config({"result_grace": 0})
    with working(jq):
        handle = nothing.enqueue()
        assert handle.result(timeout=60) is None
        with pytest.raises(NoResult, match=handle.id) as caught:
            handle.result(timeout=60)
        assert (caught.value.job_id, caught.value.reason) == (handle.id, "expired")
        [error] = jq.gather([handle], timeout=60, return_errors=True)
        assert isinstance(error, NoResult) and error.reason == "expired"


def test_calls_may_depend_on_calls_of_an_earlier_batch(jq: JQ) -> None:
    step = jq.task("step")
    calls = [step.job(number) for number in range(1001)]
    calls.append(step.options(depends=[calls[0], calls[1000]]).job())
    with pytest.raises(ValueError, match="is not enqueued"):
        jq.enqueue_many(calls[-1:])
    handles = jq.enqueue_many(calls)
    assert handles[1001].document()["depends"] == [handles[0].id, handles[1000].id]


def test_repeating_a_request_enqueues_nothing_twice(jq: JQ) -> None:
    calls = [jq.task("step").job(1), jq.task("step").job(2)]
    assert jq.enqueue_many(calls, request="r1") == jq.enqueue_many(calls, request="r1")
    assert jq.enqueue_many(calls, request="r2") != jq.enqueue_many(calls, request="r1")
    many = [jq.task("many").job(number) for number in range(1500)]  # more than go in one call
    assert len(set(jq.enqueue_many(many, request="r3") + jq.enqueue_many(many, request="r3"))) == 1500


def test_limits_are_listed_held_and_opened(jq: JQ) -> None:
    minute = datetime.timedelta(minutes=1)
    made = jq.operations.constrain("one", {"name": "mail"}, by="argument.to", rate={"limit": 5, "period": minute})
    assert made["match"] == {"name": "mail"} and made["rate"]["period"] == 60
    assert [one["id"] for one in jq.each("constraints")] == ["one"]
    now_ms = time.time() * 1000
    assert jq.operations.hold("one", minute, by="acme") == pytest.approx(now_ms + 60_000, abs=5000)
    assert jq.operations.hold("one", 60, by=None) > now_ms
    assert {key["by"] for key in jq.each("usage", "one") if key["opens_ms"] > now_ms} == {"acme", None}
    with pytest.raises(Invalid):
        jq.operations.hold("one", 60)
    jq.operations.hold("one", 0, by="acme")


def test_a_namespace_is_for_a_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    jq = JQ("http://127.0.0.1:9", namespace="{mail}")
    jq.job(name="a")(lambda: None)
    for ask in (jq.operations.queues, jq.burst, jq.worker):
        with pytest.raises(ValueError, match=r"\{mail\} applies to Redis only"):
            ask()
    with jq.using("http://127.0.0.1:9"), pytest.raises(Unavailable):
        jq.operations.queues()
    with jq.using("http://127.0.0.1:9", "{other}"), pytest.raises(ValueError, match="other"):
        jq.operations.queues()
    monkeypatch.setenv("JQ_NAMESPACE", "{mail}")  # for whoever asks a Redis
    with pytest.raises(Unavailable):
        JQ("http://127.0.0.1:9").operations.queues()


def test_what_is_asked_after_closing_opens_anew(jq: JQ) -> None:
    jq.operations.queues()
    jq.close()
    assert list(jq.each("queues")) == []

    async def ask() -> None:
        await jq.acall("queues")
        jq.close()
        assert (await jq.acall("queues")).documents == []

    asyncio.run(ask())


def test_a_master_that_is_not_there() -> None:
    jq = JQ("http://127.0.0.1:9")
    with pytest.raises(Unavailable, match="is a server running"):
        jq.enqueue("add")
    with pytest.raises(ValueError, match="begins with http://, https://, redis://"):
        JQ("amqp://x").enqueue("add")
