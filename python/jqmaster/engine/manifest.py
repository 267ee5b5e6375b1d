"""A namespace's manifest: which scripts and functions it has (docs/design.md).

Sources are kept compressed, once for all namespaces of a Redis; Redis itself gets a script when it is first called.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import logging
from pathlib import Path
from typing import Any

from redis.exceptions import ResponseError

from jqmaster.bundle.build import Bundle, Library, version_of
from jqmaster.connection.redis_client import RedisClient, refusal
from jqmaster.engine.replies import text
from jqmaster.manifest.manifest import written

log = logging.getLogger(__name__)

SHARED = "jq:scripts"
"""The sources, where all namespaces of a Redis can share them; else each has its own, ``{tag}:scripts``."""

NOTE = (Path(__file__).parent / "manifest.lua").read_text()
_TRIES = 5


async def note(client: RedisClient, namespace: str, scripts: Bundle, library: Library | None) -> None:
    """Note these scripts, and the library that is loaded; forget what no namespace needs now. Raises RedisError."""
    key = SHARED
    sources = {script.sha: script.source for script in scripts.values()}
    heads = written()
    sources[digest := hashlib.sha1(heads.encode()).hexdigest()] = heads
    arguments = [namespace, version_of(scripts), "", "", ""]
    if library:
        sources[library.name] = library.source
        arguments[2:] = library.name, " ".join(sorted(library.functions)), await _libraries(client)
    for name in sorted(scripts):
        arguments += [name, scripts[name].sha]
    arguments += ["operations", digest]
    for _ in range(_TRIES):
        try:
            done, *names = map(text, await run(client, NOTE, f"{namespace}:manifest", key, *arguments))
            if done == "1":
                for name in names:
                    await _delete_library(client, name)
                return
            await client.hset(key, mapping={name: packed(sources[name]) for name in names})
        except ResponseError as problem:
            # In a cluster, all of a namespace is in its slot.
            if key != SHARED or refusal(problem) not in ("NOPERM", "CROSSSLOT"):
                raise
            log.info("namespace %s has its sources alone: %s", namespace, problem)
            key = f"{namespace}:scripts"
    raise ResponseError(f"{key}: sources are deleted while they are written")


async def run(client: RedisClient, source: str, *arguments: Any) -> Any:
    """Run a script with its two keys and its arguments, loaded if need be. Raises RedisError.

    By its sha: EVAL would have to be granted, and with it any script. SCRIPT FLUSH may come between.
    """
    called = "EVALSHA", hashlib.sha1(source.encode()).hexdigest(), 2, *arguments
    for _ in range(_TRIES):
        try:
            return await client.execute_command(*called)
        except ResponseError as problem:
            if refusal(problem) != "NOSCRIPT":
                raise
            await client.script_load(source)
    return await client.execute_command(*called)


@functools.lru_cache(maxsize=256)
def packed(source: str) -> bytes:
    """A source as it is kept. The same source gives the same bytes."""
    return gzip.compress(source.encode(), mtime=0)


async def _libraries(client: RedisClient) -> str:
    """Those of any version that Redis has."""
    try:
        listed = await client.execute_command("FUNCTION", "LIST", "LIBRARYNAME", "jq_*")
    except ResponseError as problem:
        if refusal(problem) != "NOPERM":
            raise
        log.info("old libraries stay: FUNCTION LIST is not permitted")
        return ""
    return " ".join(text(one[1]) for one in listed)


async def _delete_library(client: RedisClient, name: str) -> None:
    try:
        await client.execute_command("FUNCTION", "DELETE", name)
    except ResponseError as problem:
        if refusal(problem) == "NOPERM":
            log.info("library %s stays: FUNCTION DELETE is not permitted", name)
        elif "not found" not in str(problem):
            raise
