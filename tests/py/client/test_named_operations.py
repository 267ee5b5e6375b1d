"""All operations, for plain code and for coroutines."""

from __future__ import annotations

import pytest

from jqmaster import JQ
from jqmaster.errors import NotFound


async def test_operations_by_their_names(redis_url: str, namespace: str) -> None:
    jq = JQ(redis_url, namespace=namespace)
    handle = await jq.aenqueue("mail", 1)
    assert await jq.operations.akick([handle.id]) == ["CONFLICT"]
    assert (await jq.operations.acall("kick", queue="mail")).more is False
    assert [job["id"] for job in (await jq.operations.ajobs({"queue": "mail"})).documents] == [handle.id]
    with pytest.raises(AttributeError, match="there is no operation kik"):
        jq.operations.kik  # type: ignore[attr-defined]  # noqa: B018


def test_operations_plainly(redis_url: str, namespace: str) -> None:
    jq = JQ(redis_url, namespace=namespace)
    assert jq.operations.queues().documents == []
    assert jq.operations.call("tags").documents == []
    with pytest.raises(NotFound):
        jq.operations.history("0" * 14)
