"""Loading scripts into a namespace (docs/design.md)."""

from __future__ import annotations

import logging
import re
from typing import Any

import redis.exceptions
from redis.exceptions import ResponseError

from jqmaster.bundle.build import Bundle, Library, builtin, version_of
from jqmaster.connection.redis_client import RedisClient, refusal
from jqmaster.engine import manifest
from jqmaster.errors import UnsuitableServer, from_redis

log = logging.getLogger(__name__)

_NAMESPACE = re.compile(r"\{[!-z|~]{1,64}\}")  # printable ASCII without blank and braces
_OLDEST = (7, 0)
_NO_FUNCTIONS = re.compile(r"ERR (unknown|unsupported) (sub)?command", re.IGNORECASE)


def check_namespace(namespace: str) -> str:
    """Return ``namespace``; raise ValueError unless it is 1 to 64 printable ASCII characters in braces."""
    if not _NAMESPACE.fullmatch(namespace):
        raise ValueError(
            f"namespace {namespace!r}: expected 1 to 64 printable ASCII characters, other than braces and "
            "blanks, in braces, such as {jq}"
        )
    return namespace


async def check_server(client: RedisClient) -> None:
    """Raise UnsuitableServer unless this is Redis 7.0 or newer that never evicts keys.

    Asks INFO and not CONFIG, which managed servers forbid. What it does not tell is only warned about.
    Raises Unavailable when Redis cannot be asked.
    """
    try:
        info: dict[str, Any] = await client.info()
    except redis.exceptions.RedisError as problem:
        if refusal(problem) != "NOPERM":
            raise from_redis(problem) from problem
        log.warning("INFO is not permitted: cannot check that Redis is 7.0 or newer and evicts nothing")
        return
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


async def load(client: RedisClient, namespace: str, scripts: Bundle | None = None) -> str:
    """Note ``scripts`` (default: the package's) for the namespace, and set it up; give their version.

    Their library is loaded as well, where the server has functions. A script is loaded when it is first called. Safe
    to repeat. Raises ValueError for a name, UnsuitableServer, Version (data of another schema: the manifest is left
    alone), Conflict (an import has begun), Unavailable.
    """
    check_namespace(namespace)
    scripts = builtin() if scripts is None else scripts
    await check_server(client)
    library = scripts.library
    try:
        await manifest.run(client, scripts["setup"].source, namespace, f"{namespace}:meta")
        if library and not await load_library(client, library):
            library = None
        await manifest.note(client, namespace, scripts, library)
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    return version_of(scripts)


async def load_library(client: RedisClient, library: Library) -> bool:
    """Whether the library is there, which is loaded if need be. Raises RedisError."""
    try:
        await client.execute_command("FUNCTION", "LOAD", library.source)
    except ResponseError as problem:
        if refuses_functions(problem):
            return False
        if "already exists" not in str(problem):
            raise
    return True


def refuses_functions(problem: Any) -> bool:
    """Whether a reply says that the server has no functions, or that this user may not use them."""
    text = str(problem)
    if refusal(problem) == "NOPERM":
        return "'fcall" in text or "'function" in text
    return isinstance(problem, ResponseError) and _NO_FUNCTIONS.match(text) is not None


def is_missing_function(problem: Any) -> bool:
    """Whether a reply says that there is no such function."""
    return isinstance(problem, ResponseError) and str(problem).startswith("ERR Function not found")
