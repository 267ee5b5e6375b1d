"""What tests of connections have in common."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from topologies import Node, nodes, until


@pytest.fixture
def pair() -> Iterator[list[Node]]:
    """A primary and its replica."""
    with nodes(2) as (primary, replica):
        replica.follow(primary)
        until(replica.has_caught_up)
        yield [primary, replica]
