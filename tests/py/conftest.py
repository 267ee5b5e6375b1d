"""Fixtures for all tests: one private Redis per session, a namespace of its own for each test."""

from __future__ import annotations

import gc
import os
import secrets
import signal
from collections.abc import AsyncIterator, Iterator

import pytest
from redis.asyncio import Redis

from jqmaster.bundle.build import builtin
from jqmaster.engine.engine import Engine, connect
from servers import RedisServer
from settable import SettableEngine, set_up

# A shell that starts the tests in the background has them ignore it, and whatever they start.
os.environ.setdefault("JQ_WAIT", "60")  # a machine that stands still for some seconds is no fault
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@pytest.fixture(scope="session")
def redis_url(redis_server: RedisServer) -> str:
    return redis_server.url


@pytest.fixture
def fresh_server() -> Iterator[RedisServer]:
    """A server for this test alone, which it may kill, flush or fill."""
    with RedisServer() as server:
        yield server


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with connect(redis_url) as client:
        yield client


@pytest.fixture
def namespace(redis_server: RedisServer) -> Iterator[str]:
    """What is in it, and in those whose names begin so, goes with it: else whatever looks through all keys of
    the server would pass by those of thousands of tests."""
    name = "{t" + secrets.token_hex(6) + "}"
    yield name
    redis_server.drop(f"{name[:-1]}*")


@pytest.fixture(scope="module", autouse=True)
def emptied(redis_server: RedisServer) -> Iterator[None]:
    """What tests of a file share goes with the file. `{with-server}` and the like stay (settable.py)."""
    yield
    redis_server.drop("{t*")


@pytest.fixture
async def engine(redis: Redis, namespace: str) -> Engine:
    """An engine on a namespace of its own, on the server's clock."""
    await set_up(redis, namespace)
    return Engine(redis, namespace)


@pytest.fixture
async def settable(redis: Redis, namespace: str) -> SettableEngine:
    """An engine on a namespace of its own, whose time stands still unless the test moves it."""
    engine = SettableEngine(redis, namespace, scripts=builtin("settable"))
    await engine.set_clock(engine.now_ms)
    await set_up(redis, namespace, "settable")
    return engine


# Files that take longest, by what was measured: each is one worker's, so they begin before the many short ones.
LONGEST = (
    "test_incidents.py",
    "test_failover_load.py", "test_faults.py", "test_failover.py", "test_graceful_stop.py",
    "test_ui_fresh.py", "test_ui_axe.py", "test_ui_jobs.py", "test_ui_job.py",
    "test_wheel.py", "test_model.py",
    "test_errors_change_nothing.py", "test_processes.py", "test_ui_pages.py", "test_rights.py", "test_ui_queues.py",
    "test_ui_failures.py", "test_slots.py", "test_worker.py", "test_languages.py", "test_export.py",
    "test_ui_actions.py", "test_ui_constraints.py", "test_ui_overview.py",
    "test_app_typing.py", "test_sources.py", "test_model_steps.py", "test_frameworks.py",
    "test_webhooks.py", "test_ui_workers.py", "test_cli_jobs.py", "test_secrets.py",
    "test_dispatch.py", "test_waiting.py", "test_deploy.py", "test_ui_login.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


def pytest_collection_finish() -> None:
    """What collection made stays until the end: looking through it again and again for what is free was a seventh of
    the time that tests compute."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
