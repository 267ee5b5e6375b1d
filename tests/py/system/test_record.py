"""The record of a system: what it says, what it refuses; and names that spread partitions over nodes."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import msgpack
import pytest
from redis.crc import key_slot

from jqmaster.errors import Invalid, Version
from jqmaster.system.layout import SLOTS, lay_out
from jqmaster.system.record import BUCKETS, Partition, System, bucket_of, new, unpack

VECTORS: dict[str, int] = json.loads((Path(__file__).parents[1] / "data/buckets.json").read_text())["buckets"]
ROOT = "{jq}"


def node_of(slot: int, nodes: int) -> str:
    return f"node-{slot * nodes // SLOTS}"


def made(count: int = 4) -> System:
    return new(lay_out(ROOT, count, ["one"] * SLOTS))


@pytest.mark.parametrize("value", VECTORS)
def test_a_value_has_the_bucket_that_the_table_for_all_languages_says(value: str) -> None:
    assert bucket_of(value.encode()) == VECTORS[value]


def test_the_page_says_how_a_bucket_is_found() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/partitions.md").read_text()
    [line] = [line[2:] for line in page.splitlines() if line.startswith("$ echo")]
    said = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout
    assert int(said) == VECTORS["acme"] == int(page.split(line)[1].split()[0])


def test_a_record_is_read_as_it_was_written() -> None:
    system = dataclasses.replace(made(), generation=7)
    assert unpack(system.packed()) == system
    assert system.root == ROOT
    assert len(system.packed()) < 4096


def test_buckets_are_shared_out_evenly() -> None:
    for count in (2, 3, 7, 256):
        shares = Counter(made(count).buckets)
        assert len(shares) == count and max(shares.values()) - min(shares.values()) <= 1
    system = made(7)
    assert system.home(b"acme") == VECTORS["acme"] % 7


@pytest.mark.parametrize(("count", "nodes"), [(2, 1), (6, 3), (16, 3), (7, 5), (256, 100)])
def test_nodes_have_equally_many_partitions(count: int, nodes: int) -> None:
    owners = [node_of(slot, nodes) for slot in range(SLOTS)]
    names = lay_out(ROOT, count, owners)
    slots = [int(key_slot(name.encode())) for name in names]
    assert names[0] == ROOT and len(set(slots)) == count
    load = Counter(owners[slot] for slot in slots)
    assert len(load) == min(count, nodes) and max(load.values()) - min(load.values()) <= 1
    assert all(name.startswith(f"{{jq:{number}~") for number, name in enumerate(names) if number)


def test_slots_that_nobody_serves_get_no_partition_and_a_node_of_few_slots_holds_nothing_up() -> None:
    owners = ["tiny"] + [""] * 8000 + ["large"] * (SLOTS - 8001)
    slots = [int(key_slot(name.encode())) for name in lay_out(ROOT, 8, owners)[1:]]
    assert all(owners[slot] for slot in slots)
    with pytest.raises(Invalid, match="no free slot"):
        lay_out(ROOT, 2, [""] * SLOTS)


def test_names_are_never_the_same_twice() -> None:
    assert not set(made(20).partitions[1:]) & set(made(20).partitions[1:])


@pytest.mark.parametrize("count", [-1, 0, 1, 257])
def test_so_many_partitions_no_system_has(count: int) -> None:
    with pytest.raises(Invalid, match="expected 2 to 256") as refused:
        lay_out(ROOT, count, ["one"] * SLOTS)
    assert refused.value.path == "partitions"
    with pytest.raises(Invalid, match="expected 2 to 256"):
        new([f"{{p{number}}}" for number in range(count)])


def test_a_name_must_leave_room_for_numbers_and_salts() -> None:
    longest = lay_out("{" + "x" * 53 + "}", 256, ["one"] * SLOTS)
    assert max(map(len, longest)) == 66
    new(longest)
    with pytest.raises(Invalid, match="at most 53 characters in braces, got 54"):
        lay_out("{" + "x" * 54 + "}", 2, ["one"] * SLOTS)


def test_no_system_is_made_of_what_is_named_as_a_partition() -> None:
    with pytest.raises(Invalid, match="named as a partition of another system is"):
        lay_out("{jq:1~4be09d}", 2, ["one"] * SLOTS)


def test_salts_that_collide_are_refused() -> None:
    by_slot: dict[int, str] = {}
    for number in range(SLOTS + 1):
        name = f"{{jq:1~{number:06x}}}"
        twin = by_slot.setdefault(int(key_slot(name.encode())), name)
        if twin != name:
            break
    with pytest.raises(Invalid, match="needs another salt") as refused:
        new([ROOT, twin, name])
    assert twin in str(refused.value) and refused.value.path == "partitions[2].namespace"


@pytest.mark.parametrize(
    "wrong",
    [
        {"buckets": (0,) * (BUCKETS - 1)},
        {"buckets": (4,) * BUCKETS},
        {"buckets": (-1,) * BUCKETS},
        {"partitions": (Partition(ROOT), Partition("{b}", "asleep"))},
        {"partitions": (Partition(ROOT), Partition("b"))},
    ],
)
def test_a_record_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        dataclasses.replace(made(), **wrong)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x01", msgpack.packb({"format": 1}), msgpack.packb([1])])
def test_what_is_no_record_is_told_so(data: bytes) -> None:
    with pytest.raises(Version, match="no record of a system"):
        unpack(data)


def test_a_record_of_a_later_version_is_told_so() -> None:
    later = msgpack.packb({**msgpack.unpackb(made().packed()), "format": 2})
    with pytest.raises(Version, match="format 2, this version knows 1: use a later one"):
        unpack(later)
