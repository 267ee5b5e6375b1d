"""`jqmaster system` on a real cluster: partitions are made, spread, shown, and told when one is missing."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from cli_support import Said, call  # noqa: F401 (fixture)
from jqmaster import JQ
from jqmaster.engine import copying
from jqmaster.engine.engine import Engine, connect
from jqmaster.engine.scripts import load
from jqmaster.errors import Conflict, Invalid, NotFound
from jqmaster.system import calls
from jqmaster.system.record import System, unpack
from systems import looked
from topologies import Cluster, cluster

pytestmark = pytest.mark.faults

Call = Callable[..., Said]


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[Cluster]:
    with cluster(3) as servers:
        yield servers


def kept(servers: Cluster, namespace: str) -> System:
    """The record as a node has it."""
    return unpack(servers.owner(namespace).do("GET", f"{namespace}:system"))


def keep(servers: Cluster, namespace: str, system: System) -> None:
    servers.owner(namespace).do("SET", f"{namespace}:system", system.packed())


def test_partitions_are_spread_and_each_works(three_nodes: Cluster, call: Call) -> None:
    where = ["--redis", three_nodes.url, "--namespace", "{works}"]
    with closing(JQ(three_nodes.url, namespace="{works}")) as jq:
        jq.enqueue("before")
    said = call("system", "create", "6", *where)
    assert (said.code, said.out) == (0, "{works} has 6 partitions, generation 1\n"), said
    shown = call("system", *where, "--json")
    assert shown.code == 0 and shown.document["generation"] == 1 and shown.document["missing"] == []
    partitions = shown.document["partitions"]
    assert Counter(one["node"] for one in partitions) == {
        f"127.0.0.1:{server.port}": 2 for server in three_nodes.primaries
    }
    assert sum(one["buckets"] for one in partitions) == 1024
    for one in partitions:
        node = three_nodes.owner(one["namespace"])
        assert one["node"] == f"127.0.0.1:{node.port}"
        assert one["problem"] is None and kept(three_nodes, one["namespace"]) == kept(three_nodes, "{works}")
        with closing(JQ(three_nodes.url, namespace=one["namespace"])) as jq:
            handle = jq.enqueue("a")
            assert handle.id[14:] == (f"{one['number']:02x}" if one["number"] else "")
            waiting = [job["name"] for job in jq.jobs()]
        assert sorted(waiting) == (["a"] if one["number"] else ["a", "before"])
    [home] = call("system", "show", "--key", "acme", *where, "--json").document["partitions"]
    assert home["number"] == kept(three_nodes, "{works}").home(b"acme")
    table = call("system", *where).out
    assert all(one["namespace"] in table for one in partitions) and "{works}: generation 1" in table


async def test_creating_is_safe_to_repeat_and_completes_what_broke_off(three_nodes: Cluster) -> None:
    system = await calls.create(three_nodes.url, "{again}", 3)
    gone = system.partitions[2].namespace
    owner = three_nodes.owner(gone)
    owner.do("DEL", *owner.do("CLUSTER", "GETKEYSINSLOT", system.partitions[2].slot, 100))
    found = await looked(three_nodes.url, "{again}")
    assert [one.problem(1)[:11] for one in found.partitions] == ["", "", "no copy of "]
    assert owner.do("EXISTS", f"{gone}:meta") == 0, "who looks sets nothing up"
    assert await calls.create(three_nodes.url, "{again}", 3) == system
    found = await looked(three_nodes.url, gone)
    assert [one.problem(1) for one in found.partitions] == ["", "", ""]
    assert owner.do("EXISTS", f"{gone}:meta") == 1


async def test_of_two_who_create_at_once_one_makes_it(three_nodes: Cluster) -> None:
    made = await asyncio.gather(*(calls.create(three_nodes.url, "{race}", 2) for _ in range(4)))
    assert len(set(made)) == 1 and kept(three_nodes, "{race}") == made[0]
    results = await asyncio.gather(
        *(calls.create(three_nodes.url, "{sizes}", count) for count in (2, 3)), return_exceptions=True
    )
    [there] = [one for one in results if isinstance(one, System)]
    [refused] = [one for one in results if isinstance(one, Conflict)]
    assert f"already: {len(there.partitions)} partitions, generation 1" in str(refused)
    assert kept(three_nodes, "{sizes}") == there


async def test_a_partition_is_no_system_of_its_own(three_nodes: Cluster) -> None:
    system = await calls.create(three_nodes.url, "{own}", 2)
    with pytest.raises(Conflict, match=r"is a partition of the system \{own\}"):
        await calls.create(three_nodes.url, system.partitions[1].namespace, 2)


@pytest.mark.parametrize("count", [1, 257])
async def test_a_refused_size_leaves_nothing_behind(three_nodes: Cluster, count: int) -> None:
    with pytest.raises(Invalid, match="expected 2 to 256"):
        await calls.create(three_nodes.url, "{size}", count)
    assert three_nodes.owner("{size}").do("EXISTS", "{size}:system", "{size}:meta") == 0


async def test_a_namespace_without_record_is_no_system(three_nodes: Cluster) -> None:
    async with connect(three_nodes.url) as redis:
        await load(redis, "{plain}")
    assert three_nodes.owner("{plain}").do("EXISTS", "{plain}:system") == 0
    with pytest.raises(NotFound, match="is no system"):
        await looked(three_nodes.url, "{plain}")


def test_copies_of_another_generation_are_told(three_nodes: Cluster, call: Call) -> None:
    where = ["--redis", three_nodes.url, "--namespace", "{copies}"]
    assert call("system", "create", "3", *where).code == 0
    system = kept(three_nodes, "{copies}")
    names = [one.namespace for one in system.partitions]
    keep(three_nodes, names[0], System(5, system.partitions, system.buckets))
    keep(three_nodes, names[1], System(6, system.partitions, system.buckets))
    said = call("system", *where, "--json")
    assert said.code == 1
    assert [one["problem"] for one in said.document["partitions"]] == [
        None, "its copy is of generation 6, which is later", "its copy is of generation 1, which is earlier"
    ]  # fmt: skip


async def test_a_copy_of_a_partition_in_another_name_is_no_partition(three_nodes: Cluster) -> None:
    await calls.create(three_nodes.url, "{source}", 2)
    async with connect(three_nodes.url) as redis:
        records = [record async for record in copying.export_records(Engine(redis, "{source}"))]
    async with connect(three_nodes.url) as redis:
        await copying.import_records(redis, "{target}", records)
    assert three_nodes.owner("{target}").do("EXISTS", "{target}:system") == 0
    assert three_nodes.owner("{target}").do("EXISTS", "{target}:meta") == 1


def test_one_server_may_have_them_all(redis_url: str, namespace: str, call: Call) -> None:
    where = ["--redis", redis_url, "--namespace", namespace]
    assert call("system", "create", "2", *where).code == 0
    shown = call("system", *where, "--json")
    assert {one["node"] for one in shown.document["partitions"]} == {"one server"} and shown.code == 0
    said = call("system", "--url", "http://127.0.0.1:1")
    assert said.code == 2 and "needs Redis itself" in said.err
    assert call("system", "create", "1", *where).code == 2


def test_what_does_not_answer_is_named(call: Call) -> None:
    with cluster(3, 0, 1500, "--cluster-require-full-coverage", "no") as servers:
        where = ["--redis", servers.url, "--namespace", "{away}"]
        assert call("system", "create", "6", *where).code == 0
        names = [one.namespace for one in kept(servers, "{away}").partitions]
        homes = {name: servers.owner(name) for name in names}
        lost = homes[names[1]]
        assert lost.process is not None and lost is not homes["{away}"]
        lost.process.send_signal(signal.SIGSTOP)
        try:
            said = call("system", *where, "--json")
        finally:
            lost.process.send_signal(signal.SIGCONT)
        assert said.code == 1, said
        document = json.loads(said.out)
        assert document["missing"] == [number for number, name in enumerate(names) if homes[name] is lost]
        assert [bool(one["problem"]) for one in document["partitions"]] == [homes[name] is lost for name in names]
