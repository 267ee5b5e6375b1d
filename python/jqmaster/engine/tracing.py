"""Trace context of jobs: it goes with them as headers, and a worker's spans continue the trace.

With the extra `opentelemetry` (the API alone) enqueueing puts the current span's context into the job, and a
worker runs each job within a span of kind consumer. Without it nothing happens here; headers given by hand,
or by whoever enqueued, are in `current_job.get().headers` all the same.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jqmaster.engine.replies import Job

try:
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    trace = None  # type: ignore[assignment]

MOST_HEADERS, MOST_BYTES = 16, 1024  # as the engine

_OWN = "traceparent"
_PRINTABLE = re.compile(rb"[ -~]{1,512}")


def carried(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    """The context in a request's headers; empty where there is none. A trace that is broken is no reason to refuse
    jobs: who continues it ignores that."""
    found = {name: headers.get(name.encode(), b"") for name in (_OWN, "tracestate")}
    context = {name: value.decode("ascii") for name, value in found.items() if _PRINTABLE.fullmatch(value)}
    return context if _OWN in context else {}


def merged(own: Any, context: Mapping[str, str]) -> dict[str, str] | None:
    """A job's own headers with those of a context; None where the own stand alone: they have a context
    already, there would be too much, or they are wrong, which the engine is to say."""
    if not isinstance(own, Mapping) or _OWN in own:
        return None
    both = {**own, **context}
    try:
        size = sum(len(name.encode()) + len(text.encode()) for name, text in both.items())
    except (AttributeError, UnicodeError):
        return None
    return both if len(both) <= MOST_HEADERS and size <= MOST_BYTES else None


def injected(spec: dict[str, Any]) -> dict[str, Any]:
    """`spec` with the context of the current span, if there is one. Call it where the job is enqueued: the
    context belongs to the caller's thread or task."""
    if trace is None or not trace.get_current_span().get_span_context().is_valid:
        return spec
    context: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(context)
    both = merged(spec.get("headers") or {}, context)
    return spec if both is None else {**spec, "headers": both}


@contextlib.contextmanager
def running(job: Job) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Run an attempt within its span: part of the trace in which the job was enqueued, and linked to the span that did
    it, however long ago. Gives what notes in it how the attempt ended, which is told as in `finish`, or `released`."""
    # Without an SDK nobody records spans; what a job's headers say is still passed on.
    if trace is None or (not job.headers and isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)):
        yield lambda spec: None
        return
    context = TraceContextTextMapPropagator().extract(dict(job.headers)) if job.headers else None
    cause = trace.get_current_span(context).get_span_context() if context is not None else None
    links = [trace.Link(cause)] if cause is not None and cause.is_valid else []
    attributes: dict[str, Any] = {
        "messaging.system": "jq",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.id,
        "jq.job.name": job.name,
        "jq.job.attempt": job.attempt,
        "jq.job.retry_count": job.retry_count,
    }
    tracer, kind = trace.get_tracer("jqmaster"), trace.SpanKind.CONSUMER
    with tracer.start_as_current_span(f"process {job.name}", context, kind, attributes, links) as span:

        def ended(spec: Mapping[str, Any]) -> None:
            span.set_attribute("jq.outcome", spec["type"])
            if spec["type"] == "failure":
                span.set_status(trace.StatusCode.ERROR, spec.get("message", ""))

        yield ended
