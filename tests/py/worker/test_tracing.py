"""A trace goes on from whoever enqueued a job to the worker that runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from http_support import Api, api, master  # noqa: F401
from jqmaster import JQ
from jqmaster.engine import tracing
from jqmaster.engine.engine import Engine
from jqmaster.worker.ending import JobFailed, JobReleased

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What a tracer of the test's own has recorded."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", lambda name: provider.get_tracer(name))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


@pytest.fixture
def jq(engine: Engine, redis_url: str) -> Iterator[JQ]:
    one = JQ(redis_url, namespace=engine.namespace)
    yield one
    one.close()


def by_name(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    [span] = [span for span in spans.get_finished_spans() if span.name == name]
    return span


# -- over HTTP ------------------------------------------------------------------------------------


async def headers_of(api: Api, queue: str = "mail") -> Any:
    [job] = await api.pick(queue)
    return job.get("headers")


async def test_the_context_of_a_request_goes_to_the_worker(api: Api) -> None:
    answer = await api.post("/job", {"name": "mail"}, traceparent=PARENT, tracestate="a=1,b=2")
    document = (await api.get(f"/job/{answer.value['job_id']}")).value
    assert document["headers"] == {"traceparent": PARENT, "tracestate": "a=1,b=2"}
    assert await headers_of(api) == document["headers"]


def test_a_context_for_which_there_is_no_room_is_left_out() -> None:
    own = {f"header-{number}": "" for number in range(tracing.MOST_HEADERS)}
    assert tracing.merged(own, {"traceparent": PARENT}) is None


async def test_a_job_whose_headers_are_full_goes_without(api: Api) -> None:
    many = {f"k{number}": "v" for number in range(16)}
    long = {"k": "v" * 1000}
    for own in (many, long):
        await api.post("/job", {"name": "mail", "headers": own}, traceparent=PARENT)
        assert await headers_of(api) == own


# -- the library ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_jobs_span_goes_on_with_the_trace(jq: JQ, spans: InMemorySpanExporter, is_async: bool) -> None:
    tracer = trace.get_tracer("test")

    def inner() -> None:
        with tracer.start_as_current_span("inner"):
            pass

    async def ainner() -> None:
        inner()

    task = jq.job(name="mail")(ainner if is_async else inner)
    with tracer.start_as_current_span("outer"):
        handle = task.enqueue()
    await jq.aburst()
    outer, job, within = by_name(spans, "outer"), by_name(spans, "process mail"), by_name(spans, "inner")
    assert job.context.trace_id == outer.context.trace_id == within.context.trace_id
    assert job.parent.span_id == outer.context.span_id
    assert [link.context.span_id for link in job.links] == [outer.context.span_id]
    assert within.parent.span_id == job.context.span_id
    assert job.kind is trace.SpanKind.CONSUMER
    assert job.attributes["messaging.message.id"] == handle.id
    assert job.attributes["jq.job.attempt"] == 1
    assert job.attributes["jq.outcome"] == "success"


async def test_each_attempt_has_a_span_that_tells_how_it_ended(jq: JQ, spans: InMemorySpanExporter) -> None:
    endings = iter([JobFailed("no"), JobReleased("later"), None])

    @jq.job(retry_base=0)
    def mail() -> None:
        ending = next(endings)
        if ending is not None:
            raise ending

    with trace.get_tracer("test").start_as_current_span("outer"):
        mail.enqueue()
    for _ in range(2):
        await jq.aburst(raises=False, delayed=True)
    attempts = [span for span in spans.get_finished_spans() if span.name == "process mail"]
    assert [span.attributes["jq.outcome"] for span in attempts] == ["failure", "released", "success"]
    assert [span.status.is_ok for span in attempts] == [False, True, True]
    assert len({span.context.trace_id for span in attempts}) == 1
