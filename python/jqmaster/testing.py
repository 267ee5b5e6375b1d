"""A pytest plugin: jobs against a private Redis. Installed with the package, nothing has to be imported.

def test_add(jq):
    handle = add.enqueue(40, 2)
    jq.burst()
    assert handle.result(timeout=5) == 42

The ini option `jq_app` names the program's object (`jq_app = myapp.jobs:jq`): the fixture `jq` is that
one, in a namespace of its own for each test. Without it, a new object. The variable `JQ_TEST_REDIS` names a
Redis to use; else one is started for the session.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from jqmaster.client.app import JQ


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `jq_app`."""
    parser.addini("jq_app", "the JQ object under test, as module:name", default="")


@pytest.fixture(scope="session")
def jq_redis() -> Iterator[str]:
    """URL of a Redis for tests: `JQ_TEST_REDIS`, or a private one for the session."""
    given = os.environ.get("JQ_TEST_REDIS")
    if given:
        yield given
        return
    from jqmaster.server.embedded import StartError, embedded_redis

    folder = tempfile.mkdtemp(prefix="jq-")
    try:
        with embedded_redis(folder) as url:
            yield url
    except StartError as error:
        pytest.skip(f"no Redis: {error}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def jq_namespace(jq_redis: str) -> Iterator[str]:
    """A namespace of this test's own. What is in it goes with it."""
    namespace = "{test-" + secrets.token_hex(6) + "}"
    yield namespace
    from jqmaster.connection import plainly

    plainly.run(_clear(jq_redis, namespace))


async def _clear(url: str, namespace: str) -> None:
    from jqmaster.engine.engine import connect

    client = connect(url)
    try:
        async for key in client.scan_iter(match=f"{namespace}*", count=1000):
            await client.unlink(key)
    finally:
        await client.aclose()


@pytest.fixture
def jq(request: pytest.FixtureRequest, jq_redis: str, jq_namespace: str) -> Iterator[JQ]:
    """The object under test, on a private Redis, in a namespace of its own with the program's limits."""
    from jqmaster.client.app import JQ
    from jqmaster.connection import plainly

    where = str(request.config.getini("jq_app"))
    app = _named(where) if where else JQ()
    with app.using(jq_redis, jq_namespace):
        for bring in app.limits.values():
            plainly.run(bring())
        yield app


@pytest.fixture
def jq_worker(jq: JQ) -> Iterator[None]:
    """A worker for `jq`, in a thread, while the test runs: `def test_add(jq: JQ, jq_worker: None)`. It is one for the
    whole test, where each `jq.burst()` is one of its own, with fresh processes for `process=True`. What ends it early
    is raised at the end of the test."""
    with working(jq):
        yield


@contextlib.contextmanager
def working(jq: JQ, **options: Any) -> Iterator[None]:
    """Within it a worker works in a thread of its own; `options` as those of `JQ.worker`. What ends it early
    is raised at the end."""
    started: Future[asyncio.AbstractEventLoop] = Future()
    stop = asyncio.Event()

    async def main() -> None:
        started.set_result(asyncio.get_running_loop())
        await jq.worker(**options).serve(stop)

    with ThreadPoolExecutor(1, "worker") as thread:
        ended = thread.submit(lambda: asyncio.run(main()))
        loop = started.result()
        try:
            yield
        finally:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(stop.set)
    ended.result()


def _named(where: str) -> JQ:
    from jqmaster.client.app import JQ

    module, _, name = where.partition(":")
    try:
        found = getattr(import_module(module), name or "jq")
    except (ImportError, AttributeError) as error:
        raise pytest.UsageError(f"jq_app = {where}: {error}") from error
    if not isinstance(found, JQ):
        raise pytest.UsageError(f"jq_app = {where}: expected a JQ object, got {found!r}")
    return found
