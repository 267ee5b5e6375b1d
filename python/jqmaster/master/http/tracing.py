"""W3C Trace Context from a request's headers into those of the jobs it enqueues."""

from __future__ import annotations

import re
from typing import Any

from jqmaster.wire import tracing
from jqmaster.wire.message import Request

# Of a later version than 00, what follows may be more.
_TRACEPARENT = re.compile(
    rb"(?:00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    rb"|(?!00|ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]{0,73})?)"
)
_TRACESTATE = re.compile(rb"[ -~]{1,512}")


def carried(request: Request) -> dict[str, str]:
    """The context of the request; empty when there is none, or what is there is not well-formed: a trace that
    is broken is no reason to refuse jobs."""
    parent = request.headers.get(b"traceparent")
    if parent is None or not _TRACEPARENT.fullmatch(parent):
        return {}
    context = {"traceparent": parent.decode("ascii")}
    state = request.headers.get(b"tracestate")
    if state is not None and _TRACESTATE.fullmatch(state):
        context["tracestate"] = state.decode("ascii")
    return context


def carry(context: dict[str, str], spec: dict[str, Any]) -> None:
    """Give it to a job, unless that has one of its own, or has no room."""
    if context:
        both = tracing.merged(spec.get("headers", {}), context)
        if both is not None:
            spec["headers"] = both
