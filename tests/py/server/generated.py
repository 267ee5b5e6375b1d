"""What schemathesis makes of the document, sent to a live server. It takes long to import: only those who use it do."""

from __future__ import annotations

from typing import Any

import msgpack
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import one_of
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from http_live import Live
from http_support import MSGPACK


@schemathesis.serializer(MSGPACK)
def serialize_msgpack(_context: Any, value: Any) -> Any:
    # What it generates for negative tests need not be packable; then send bytes that are no MessagePack.
    try:
        return msgpack.packb(value)
    except (TypeError, ValueError, OverflowError):
        return b"\xc1"


@schemathesis.deserializer(MSGPACK)
def deserialize_msgpack(_context: Any, response: Any) -> Any:
    return msgpack.unpackb(response.content, strict_map_key=False)


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def known_constraint(live: Live) -> str:
    """A constraint with `by`, and a job that runs under it."""
    engine = live.master.engine
    definition = {"id": "known", "by": "argument", "concurrency": 1}
    live.run(engine.raw("constrain", msgpack.packb(definition), msgpack.packb({"name": "a"})))
    live.run(engine.enqueue([({"name": "a"}, msgpack.packb("x"))]))
    live.run(engine.pick("w", "a"))
    return "known"


def ask(operation: Any, live: Live, session: requests.Session) -> None:
    """Send some requests of an operation, right and wrong ones: fails unless the document foresees the answers."""
    cases = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

    @given(case=one_of(cases))
    @settings(
        max_examples=10,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def send(case: Any) -> None:
        prepare(case, live)
        case.call_and_validate(base_url=live.url, session=session, checks=CHECKS, timeout=60)

    send()


def prepare(case: Any, live: Live) -> None:
    """Have it meet what is there, and wait for nothing."""
    if case.path.startswith("/constraint/") and len(str(case.path_parameters["id"])) % 2:
        # Ids of chance meet nothing that is there.
        case.path_parameters["id"] = known_constraint(live)
    if case.operation.path == "/pick" and isinstance(case.body, dict) and "timeout" in case.body:
        case.body["timeout"] = 0
    if case.path.endswith("/polling"):
        case.query = {**(case.query or {}), "timeout": 0}
