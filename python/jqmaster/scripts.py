"""Finding the built scripts, and loading them into a namespace (docs/protocol.md, section 10)."""

from __future__ import annotations

import functools
import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import redis.exceptions
from redis.asyncio import Redis

from . import luabuild
from .errors import UnsuitableServer, from_redis
from .luabuild import Bundle, Clock, Library, Script, version_of

log = logging.getLogger(__name__)

_NAMESPACE = re.compile(r"\{[!-z|~]{1,64}\}")  # printable ASCII without blank and braces
_OLDEST = (7, 0)


@functools.cache
def builtin(clock: Clock = "server") -> Bundle:
    """The scripts of this package, by name. A wheel carries them built; a checkout builds them once."""
    built = Path(__file__).parent / "lua"
    if clock == "server" and (built / "manifest.json").is_file():
        return read_built(built)
    return luabuild.build_cached(clock)


def read_built(directory: Path) -> Bundle:
    """Read scripts that ``luabuild.dump`` wrote. Raises ValueError when a file is not what it says."""
    manifest = json.loads((directory / "manifest.json").read_text())
    scripts = Bundle()
    for name, entry in manifest["scripts"].items():
        path = directory / f"{name}.lua"
        script = luabuild.make_script(name, path.read_bytes().decode(), entry["flags"])
        if script.sha != entry["sha"]:
            raise ValueError(f"{path} has sha {script.sha}, its manifest says {entry['sha']}: build it again")
        scripts[name] = script
    if manifest["library"]:
        source = (directory / "library.lua").read_bytes().decode()
        scripts.library = Library(
            manifest["library"]["name"], source, frozenset(manifest["library"]["functions"])
        )
    return scripts


def check_namespace(namespace: str) -> str:
    """Return ``namespace``; raise ValueError unless it is 1 to 64 printable ASCII characters in braces."""
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError(
            f"namespace {namespace!r}: expected 1 to 64 printable ASCII characters, other than braces and "
            "blanks, in braces, such as {jq}"
        )
    return namespace


async def check_server(client: Redis) -> None:
    """Raise UnsuitableServer unless this is Redis 7.0 or newer that never evicts keys.

    Asks INFO and not CONFIG, which managed servers forbid. What it does not tell is only warned about.
    Raises Unavailable when Redis cannot be asked.
    """
    try:
        info: dict[str, Any] = {}
        for section in ("server", "memory"):
            info |= await client.info(section)
    except redis.exceptions.NoPermissionError:
        log.warning("INFO is not permitted: cannot check that Redis is 7.0 or newer and evicts nothing")
        return
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    version = str(info.get("redis_version", ""))
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers and numbers < _OLDEST:
        raise UnsuitableServer(f"this is Redis {version}: JQ needs Redis 7.0 or newer")
    policy = info.get("maxmemory_policy")
    if not numbers or policy is None:
        log.warning("Redis does not tell its version or its maxmemory-policy: 7.0 and noeviction are needed")
    elif policy != "noeviction":
        raise UnsuitableServer(
            f"maxmemory-policy is {policy}: Redis would drop jobs when memory is short. "
            "Set it to noeviction (CONFIG SET maxmemory-policy noeviction, and in redis.conf)"
        )


async def load(
    client: Redis,
    namespace: str,
    scripts: Mapping[str, Script] | None = None,
    *,
    make_current: bool = True,
    migrate: bool = False,
) -> str:
    """Load ``scripts`` (default: the package's), set the namespace up, write its manifest; give the version.

    Safe to repeat. With ``make_current=False`` the namespace's current version stays what it is, and these
    scripts stand beside it. With ``migrate`` a namespace of an older schema is brought up to this one.
    Raises ValueError (namespace), UnsuitableServer, Version (data of another schema: the manifest is left
    alone), Conflict (an import has begun), Unavailable.
    """
    check_namespace(namespace)
    await check_server(client)
    scripts = builtin() if scripts is None else scripts
    if migrate:
        await _migrate(client, namespace, scripts["migrate"])
    return await install(client, namespace, scripts, make_current=make_current)


async def _migrate(client: Redis, namespace: str, script: Script) -> None:
    """Older scripts answer VERSION from then on; what is not set up is left alone."""
    meta = f"{namespace}:meta"
    try:
        if await client.exists(meta):
            await client.execute_command("EVAL", script.source, 2, namespace, meta)
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem


async def install(client: Redis, namespace: str, scripts: Mapping[str, Script], *, make_current: bool) -> str:
    """As ``load``, for a server and a namespace already checked."""
    version = version_of(scripts)
    manifest = f"{namespace}:manifest"
    fields: dict[Any, Any] = {}
    for name, script in scripts.items():
        fields[f"{version}/{name}"] = script.sha
        fields[f"source:{script.sha}"] = script.source
        fields[f"flags:{script.sha}"] = script.flags
    current = {"version": version} | {name: script.sha for name, script in scripts.items()}
    try:
        async with client.pipeline(transaction=False) as pipe:
            for script in scripts.values():
                pipe.script_load(script.source)
            await pipe.execute()
        # EVAL and not EVALSHA: nobody's SCRIPT FLUSH can come between.
        await client.execute_command("EVAL", scripts["setup"].source, 2, namespace, f"{namespace}:meta")
        if make_current:
            fields |= current
            # A script that this version no longer has must not be found under its bare name.
            present = {_text(field) for field in await client.hkeys(manifest)}
            gone = [field for field in present if not set(field) & set("/:") and field not in current]
        async with client.pipeline(transaction=True) as pipe:
            if make_current and gone:
                pipe.hdel(manifest, *gone)
            pipe.hset(manifest, mapping=fields)
            await pipe.execute()
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    return version


async def fetch(client: Redis, namespace: str, version: str | None = None) -> dict[str, Script]:
    """Read a namespace's scripts out of its manifest: the current version's, or those of ``version``.

    For clients that must not bring scripts of their own. Raises LookupError, Unavailable.
    """
    check_namespace(namespace)
    try:
        raw = await client.hgetall(f"{namespace}:manifest")
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    manifest = {_text(field): _text(value) for field, value in raw.items()}
    prefix = f"{version or manifest.get('version')}/"
    shas = {field.removeprefix(prefix): sha for field, sha in manifest.items() if field.startswith(prefix)}
    if not shas:
        raise LookupError(
            f"the manifest of namespace {namespace} has no scripts of version {version or 'any'}"
        )
    return {
        name: Script(name, manifest[f"source:{sha}"], sha, manifest[f"flags:{sha}"])
        for name, sha in shas.items()
    }


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
