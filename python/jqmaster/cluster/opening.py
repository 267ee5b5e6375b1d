"""Opening a namespace, or a cluster, by its name."""

from __future__ import annotations

from typing import Any

from jqmaster.cluster.cluster import Cluster
from jqmaster.cluster.names import is_cluster
from jqmaster.engine.engine import Engine, connect


def open_engine(url: str, namespace: str, **how: Any) -> Engine:
    """The operations of a namespace such as `{shop}`, or of a cluster such as `{shop:*/16}`, with connections of their
    own. `how`: of `Engine`. Raises ValueError for a URL or a name that cannot be."""
    return Cluster(url, namespace, **how) if is_cluster(namespace) else Engine(connect(url), namespace, **how)
