"""Names of partitions and homes of values: the same in all languages."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from redis.crc import key_slot

from jqmaster.cluster.cluster import WAYS, open_engine
from jqmaster.cluster.names import home_of, is_cluster, number_of, partitions
from jqmaster.manifest.manifest import operations

VECTORS = json.loads((Path(__file__).parents[1] / "data" / "cluster.json").read_text())


@pytest.mark.parametrize("cluster", VECTORS["partitions"])
def test_names_are_those_of_the_vectors(cluster: str) -> None:
    assert list(partitions(cluster)) == VECTORS["partitions"][cluster]


@pytest.mark.parametrize("count", VECTORS["homes"])
def test_homes_are_those_of_the_vectors(count: str) -> None:
    homes = VECTORS["homes"][count]
    assert {value: home_of(value, int(count)) for value in homes} == homes


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("count", [12, 16, 256])
def test_partitions_spread_over_nodes(count: int, nodes: int) -> None:
    slots = [int(key_slot(name.encode())) for name in partitions(f"{{mail:*/{count}}}")]
    assert len(set(slots)) == count
    share = -(-16384 // nodes)
    loads = Counter(slot // share for slot in slots)
    assert max(loads.values()) - min(loads.values()) <= (2 if count % nodes else 0)


@pytest.mark.parametrize("name", ["{shop}", "{shop:*}", "{shop:*/0}", "{shop:*/x}", "{:*/16}", "{shop:0~1/16}", "shop"])
def test_what_is_no_name_of_a_cluster(name: str) -> None:
    assert not is_cluster(name)


@pytest.mark.parametrize("name", ["{shop:*/257}", "{" + "x" * 60 + ":*/16}"])
def test_a_name_that_cannot_be(name: str) -> None:
    assert is_cluster(name)
    with pytest.raises(ValueError, match="expected"):
        open_engine("redis+cluster://nowhere", name)


def test_each_operation_says_how_it_goes_over_partitions() -> None:
    assert {operation.over for operation in operations().values()} == WAYS.keys()


def test_ids_say_their_partition() -> None:
    numbers = {"0650f3a2b1c4d5": 0, "0650f3a2b1c4d50a": 10, "w0650f3a2b1c4d5ff": 255, "t0650f3a2b1c4d501": 1}
    assert {one: number_of(one, 256) for one in numbers} == numbers
    assert number_of(b"0650f3a2b1c4d50a", 16) == 10
    assert number_of("0650f3a2b1c4d520", 16) == 0  # which has no such job
    assert number_of("host:1", 16) == home_of("host:1", 16)
