"""Writes a rich namespace with the scripts of another tree, and keeps it as data (see README.md)."""

from __future__ import annotations

import argparse
import asyncio
import gzip
from pathlib import Path

import msgpack

from jqmaster.bundle import build as luabuild
from jqmaster.engine.engine import connect
from jqmaster.engine.scripts import install
from keyspace import read_keys
from rich import fill
from servers import RedisServer
from settable import SettableEngine

NAMESPACE = "{before}"
SCRIPTS = ("setup", "tick", "watch")  # short ones, to show that they refuse what is newer


async def keep(sources: Path) -> None:
    scripts = luabuild.build(sources, "settable")
    with RedisServer() as server:
        async with connect(server.url) as client:
            engine = SettableEngine(client, NAMESPACE, scripts=scripts)
            await engine.set_clock(engine.now_ms)
            await install(client, NAMESPACE, scripts, make_current=False)
            await fill(engine)
            schema = await engine.setup()
            keys = await read_keys(client, NAMESPACE)
            ids = sorted(suffix[2:] for suffix in (key[0].decode() for key in keys if key[0][:2] == b"j:"))
            documents = dict(zip(ids, await engine.call("get", *ids), strict=True))
            queues = (await engine.call("queues", msgpack.packb({"count": 1000})))[1:]
            assert await engine.audit_all() == []
    kept = {"schema": schema, "namespace": NAMESPACE, "now_ms": engine.now_ms, "keys": keys,
            "documents": documents, "queues": queues,
            "scripts": {name: scripts[name].source for name in SCRIPTS}}  # fmt: skip
    path = Path(__file__).parent / f"schema{schema}.msgpack.gz"
    path.write_bytes(gzip.compress(msgpack.packb(kept), mtime=0))
    print(f"{path}: {len(keys)} keys, {len(documents)} jobs, {path.stat().st_size} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="a tree with scripts/ and jqlua/")
    asyncio.run(keep(parser.parse_args().sources))
