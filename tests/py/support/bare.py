"""Workers of functions that take a job's bare argument, by their names: for tests of what is around functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgpack

from jqmaster import JQ
from jqmaster.client.worker import AppWorker
from jqmaster.worker.sources import EngineSource
from jqmaster.worker.worker import Worker


class Bare:
    """Whatever the argument is, it is the one positional argument."""

    def dumps(self, value: Any) -> bytes:
        packed: bytes = msgpack.packb(value)
        return packed

    def loads(self, data: bytes) -> Any:
        return [msgpack.unpackb(data, strict_map_key=False)]


def program(functions: Mapping[str, Callable[..., Any]], url: str = "redis://nobody", **more: Any) -> JQ:
    jq = JQ(url, serializer=Bare(), **more)
    for name, function in functions.items():
        jq.job(name=name)(function)
    return jq


def app_worker(
    way: str, urls: tuple[str, str], namespace: str, functions: Mapping[str, Callable[..., Any]], **options: Any
) -> AppWorker:
    """`way`: redis, http or push. `urls`: of the Redis, and of the servers."""
    where: dict[str, Any] = {"url": urls[0], "namespace": namespace} if way == "redis" else {"url": urls[1]}
    return program(functions, **where).worker(push=way == "push", **options)


def worker_of(
    functions: Mapping[str, Callable[..., Any]], source: EngineSource, kind: type[Worker] = Worker, **options: Any
) -> Worker:
    return AppWorker(program(functions), concurrency=options.pop("concurrency", 8)).worker(source, kind, **options)
