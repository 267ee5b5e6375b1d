"""A namespace's manifest: which scripts and functions its versions have (docs/design.md).

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

from jqmaster.bundle.build import Bundle, Library, Script, version_of
from jqmaster.connection.redis_client import RedisClient, refusal
from jqmaster.engine.replies import text
from jqmaster.manifest.manifest import written

log = logging.getLogger(__name__)

SHARED = "jq:scripts"
"""The sources, where all namespaces of a Redis can share them; else each has its own, ``{tag}:scripts``."""

NOTE = (Path(__file__).parent / "manifest.lua").read_text()
_TRIES = 5


async def note(
    client: RedisClient,
    namespace: str,
    scripts: Bundle,
    library: Library | None,
    *,
    make_current: bool,
) -> None:
    """Note these scripts, and the library that is loaded; forget all versions but these and those before.

    Raises RedisError.
    """
    key = SHARED
    version = version_of(scripts)
    arguments = [namespace, version, "1" if make_current else "0"]
    arguments += [library.name, listed(library)] if library else ["", ""]
    contracts = written(scripts)
    arguments.append(digest := hashlib.sha1(contracts.encode()).hexdigest())
    for name in sorted(scripts):
        arguments += [name, scripts[name].sha, scripts[name].flags]
    for _ in range(_TRIES):
        try:
            done, *names = await run(client, NOTE, f"{namespace}:manifest", key, *arguments)
            names = [text(name) for name in names]
            if done:
                await _delete_libraries(client, names)
                return
            keeping: dict[str, Script | Library] = {script.sha: script for script in scripts.values()}
            if library:
                keeping[library.name] = library
            sources = {name: contracts if name == digest else keeping[name].source for name in names}
            if names:
                await client.hset(key, mapping={name: packed(source) for name, source in sources.items()})
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


def listed(library: Library) -> str:
    """The field ``functions``: the library's operations."""
    return " ".join(sorted(library.functions))


async def _delete_libraries(client: RedisClient, names: list[str]) -> None:
    for name in names:
        try:
            await client.call("FUNCTION", "DELETE", name)
        except ResponseError as problem:
            if refusal(problem) == "NOPERM":
                log.info("old libraries stay: FUNCTION DELETE is not permitted")
            elif "not found" not in str(problem):
                raise


async def note_library(client: RedisClient, namespace: str, scripts: Bundle, library: Library) -> None:
    """Note a library that was brought by who missed it, so that it goes one day. Raises RedisError."""
    manifest, version = f"{namespace}:manifest", version_of(scripts)
    if await client.hexists(manifest, "version"):
        fields: dict[Any, Any] = {f"{version}/library": library.name, f"{version}/functions": listed(library)}
        await client.hset(manifest, mapping=fields)
