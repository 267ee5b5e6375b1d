"""A Redis Cluster of three primaries for the tests of this folder; each has a cluster of JQ of its own."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from jqmaster.cluster.cluster import Cluster, open_engine
from topologies import Cluster as RedisCluster
from topologies import cluster


@pytest.fixture(scope="session")
def nodes() -> Iterator[RedisCluster]:
    with cluster(3) as servers:
        yield servers


@pytest.fixture
def name() -> str:
    """Of a cluster of six partitions."""
    return "{t" + secrets.token_hex(6) + ":*/6}"


@pytest.fixture
async def jq(nodes: RedisCluster, name: str) -> AsyncIterator[Cluster]:
    """The operations of a cluster."""
    jq = open_engine(nodes.url, name)
    assert isinstance(jq, Cluster)
    yield jq
    await jq.close()
