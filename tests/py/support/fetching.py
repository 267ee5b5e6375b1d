"""A namespace's scripts as its manifest has them: what clients in other languages read (docs/design.md)."""

from __future__ import annotations

import gzip

from redis.asyncio import Redis

from jqmaster.bundle.build import Bundle, Library, Script, builtin
from jqmaster.engine.replies import text


async def fetch(client: Redis, namespace: str) -> Bundle:
    """Its scripts, and their library if it is there."""
    shas = {text(name): text(value) for name, value in (await client.hgetall(f"{namespace}:manifest")).items()}
    del shas["version"], shas["operations"]
    key, library, functions = shas.pop("sources"), shas.pop("library", ""), shas.pop("functions", "")

    async def source(name: str) -> str:
        return gzip.decompress(await client.hget(key, name)).decode()

    scripts = Bundle()
    for name, sha in shas.items():
        scripts[name] = Script(name, await source(sha), sha, builtin()[name].flags if name in builtin() else "read")
    if library:
        scripts.library = Library(library, await source(library), frozenset(functions.split()))
    return scripts
