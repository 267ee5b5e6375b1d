"""The transports of a `JQ` as test parameters, and a worker for its jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from http_live import live_server
from jqmaster import JQ
from jqmaster.testing import working

__all__ = ["jq", "transport", "working"]


@contextlib.contextmanager
def transport(kind: str, redis_url: str, namespace: str, **options: Any) -> Iterator[JQ]:
    """A `JQ` by the scripts (`redis`), or by a master (`http`)."""
    with live_server(redis_url, namespace) if kind == "http" else contextlib.nullcontext() as server:
        jq = JQ(server.url, **options) if server else JQ(redis_url, namespace=namespace, **options)
        yield jq
        jq.close()


@pytest.fixture(params=["redis", "http"])
def jq(request: pytest.FixtureRequest, redis_url: str, namespace: str) -> Iterator[JQ]:
    """The same calls on both transports."""
    with transport(request.param, redis_url, namespace) as it:
        yield it
