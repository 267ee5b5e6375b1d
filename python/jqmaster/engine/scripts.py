"""Loading scripts into a namespace (docs/design.md)."""

from __future__ import annotations

import logging
import re
from typing import Any, Literal

import redis.exceptions
from redis.exceptions import ResponseError

from jqmaster.bundle.build import Bundle, Library, builtin, version_of
from jqmaster.connection.redis_client import RedisClient, refusal
from jqmaster.engine import manifest
from jqmaster.errors import NoFunctions, UnsuitableServer, from_redis

log = logging.getLogger(__name__)

_NAMESPACE = re.compile(r"\{[!-z|~]{1,64}\}")  # printable ASCII without blank and braces
_OLDEST = (7, 0)
_NO_FUNCTIONS = re.compile(r"ERR (unknown|unsupported) (sub)?command", re.IGNORECASE)

Form = Literal["auto", "functions", "scripts"]
"""How operations of the library are called: by FCALL or by EVALSHA; auto is FCALL where it can be."""
FORMS: tuple[Form, ...] = ("auto", "functions", "scripts")


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


async def load(client: RedisClient, namespace: str, scripts: Bundle | None = None, *, form: Form = "auto") -> str:
    """Note ``scripts`` (default: the package's) for the namespace, and set it up; give their version.

    Their library is loaded as well: with ``auto`` where the server has functions, with ``scripts`` never. A script
    is loaded when it is first called. The version before stays beside it. Safe to repeat. Raises ValueError for a name,
    UnsuitableServer, Version (data of another schema: the manifest is left alone), Conflict (an import has begun),
    Unavailable.
    """
    chosen = builtin() if scripts is None else scripts
    return await install(client, check_namespace(namespace), chosen, make_current=True, form=form)


async def install(
    client: RedisClient,
    namespace: str,
    scripts: Bundle,
    *,
    make_current: bool,
    form: Form = "auto",
) -> str:
    """As ``load``, once and for a namespace whose name was checked. Whoever sets a namespace up comes by here. With
    ``make_current=False`` its current version stays what it is, and these scripts stand beside it."""
    await check_server(client)
    library = scripts.library
    try:
        await manifest.run(client, scripts["setup"].source, namespace, f"{namespace}:meta")
        if library and (form == "scripts" or not await load_library(client, library, form)):
            library = None
        await manifest.note(client, namespace, scripts, library, make_current=make_current)
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    return version_of(scripts)


async def load_library(client: RedisClient, library: Library, form: Form) -> bool:
    """Whether the library is there, which is loaded if need be. Raises RedisError, and NoFunctions where it cannot be
    loaded although ``form`` is "functions"."""
    try:
        await client.execute_command("FUNCTION", "LOAD", library.source)
    except ResponseError as problem:
        if "already exists" in str(problem):
            return True
        if not refuses_functions(problem):
            raise
        if form == "functions":
            raise NoFunctions(problem) from problem
        return False
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
