"""A namespace's scripts as its manifest has them: what clients in other languages read (docs/design.md)."""

from __future__ import annotations

import gzip
from typing import Any

from redis.asyncio import Redis

from jqmaster.bundle.build import Bundle, Library, Script
from jqmaster.engine.replies import text


async def fetch(client: Redis, namespace: str, version: str | None = None) -> Bundle:
    """Those of the current version, or of ``version``, and their library if it is there. Raises LookupError."""
    manifest = f"{namespace}:manifest"
    wanted = version or text(await client.hget(manifest, "version") or b"")
    fields = ("sources", f"{wanted}/scripts", f"{wanted}/library", f"{wanted}/functions")
    key, said, library, functions = await client.hmget(manifest, *fields)
    if not said:
        raise LookupError(f"the manifest of namespace {namespace} has no scripts of version {version or 'any'}")
    entries = [line.split(" ") for line in text(said).splitlines()]
    names = [sha for _, sha, _ in entries] + ([text(library)] if library else [])
    found = zip(names, await client.hmget(text(key), names), strict=True)
    kept: dict[str, Any] = {name: gzip.decompress(source).decode() for name, source in found if source is not None}
    if absent := [name for name in names if name not in kept]:
        raise LookupError(f"{text(key)} has no source of {', '.join(absent)}: load the scripts again")
    scripts = Bundle((name, Script(name, kept[sha], sha, flags)) for name, sha, flags in entries)
    if library:
        name = text(library)
        scripts.library = Library(name, kept[name], frozenset(text(functions or b"").split()))
    return scripts
