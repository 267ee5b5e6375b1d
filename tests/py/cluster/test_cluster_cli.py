"""The command line takes a cluster's name wherever it takes a namespace's."""

from __future__ import annotations

import os
import subprocess
import sys

from jqmaster.cluster.names import partitions
from topologies import Cluster as RedisCluster


def run(nodes: RedisCluster, name: str, *arguments: str, code: int = 0) -> str:
    """What a command prints."""
    environment = {**os.environ, "JQ_REDIS": nodes.url, "JQ_URL": nodes.url, "JQ_NAMESPACE": name}
    command = [sys.executable, "-m", "jqmaster", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout


def test_the_doctor_compares_partitions(nodes: RedisCluster, name: str) -> None:
    run(nodes, name, "load")
    run(nodes, name, "call", "config", "--set", "retry_base=7")
    run(nodes, partitions(name)[3], "call", "config", "--set", "retry_base=8")
    assert "retry_base is not in partition 3 what it is in partition 0" in run(nodes, name, "doctor", code=1)
