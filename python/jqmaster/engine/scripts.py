"""Finding the built scripts, and loading them into a namespace (docs/protocol.md, section 10)."""

from __future__ import annotations

import functools
import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import redis.exceptions
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, ResponseError

from jqmaster.bundle import build as luabuild
from jqmaster.bundle.build import Bundle, Clock, Library, Script, library_of, version_of
from jqmaster.connection.place import patiently, place_of
from jqmaster.errors import NoFunctions, UnsuitableServer, from_redis

log = logging.getLogger(__name__)

_NAMESPACE = re.compile(r"\{[!-z|~]{1,64}\}")  # printable ASCII without blank and braces
_OLDEST = (7, 0)
_NO_FUNCTIONS = re.compile(r"(unknown|unsupported) (sub)?command", re.IGNORECASE)
_NOT_SCRIPTS = {"version", "library", "functions"}  # fields of a manifest

Form = Literal["auto", "functions", "scripts"]
"""How operations of the library are called: by FCALL or by EVALSHA; auto is FCALL where it can be."""
FORMS: tuple[Form, ...] = ("auto", "functions", "scripts")


@functools.cache
def builtin(clock: Clock = "server") -> Bundle:
    """The scripts of this package, by name. A wheel carries them built; a checkout builds them once."""
    built = Path(__file__).parents[1] / "lua"
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
        scripts.library = Library(manifest["library"]["name"], source, frozenset(manifest["library"]["functions"]))
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
    form: Form = "auto",
) -> str:
    """Load ``scripts`` (default: the package's), set the namespace up, write its manifest; give the version.

    Their library is loaded as well: with ``auto`` where the server has functions, with ``scripts`` never.
    Libraries older than the version before go. Safe to repeat. With ``make_current=False`` the namespace's
    current version stays what it is, and these scripts stand beside it. With ``migrate`` a namespace of an
    older schema is brought up to this one.
    Raises ValueError (namespace), UnsuitableServer, Version (data of another schema: the manifest is left
    alone), Conflict (an import has begun), Unavailable.
    """
    place_of(client).serve(check_namespace(namespace))
    scripts = builtin() if scripts is None else scripts

    async def work() -> str:
        await check_server(client)
        await _check_key(client, namespace)
        if migrate:
            await _migrate(client, namespace, scripts["migrate"])
        return await install(client, namespace, scripts, make_current=make_current, form=form)

    return await patiently(work)


async def _check_key(client: Redis, namespace: str) -> None:
    """A key named as the namespace would have scripts run on half a key space while its slot moves."""
    try:
        is_there = await client.exists(namespace)
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    if is_there:
        raise UnsuitableServer(f"there is a key named {namespace}, which no namespace may have: remove it")


async def _migrate(client: Redis, namespace: str, script: Script) -> None:
    """Older scripts answer VERSION from then on; what is not set up is left alone."""
    meta = f"{namespace}:meta"
    try:
        if await client.exists(meta):
            await client.execute_command("EVAL", script.source, 2, namespace, meta)
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem


async def install(
    client: Redis,
    namespace: str,
    scripts: Mapping[str, Script],
    *,
    make_current: bool,
    form: Form = "auto",
) -> str:
    """As ``load``, for a server and a namespace already checked."""
    version = version_of(scripts)
    manifest = f"{namespace}:manifest"
    fields: dict[Any, Any] = {}
    for name, script in scripts.items():
        fields[f"{version}/{name}"] = script.sha
        fields[f"source:{script.sha}"] = script.source
        fields[f"flags:{script.sha}"] = script.flags
    current = {"version": version} | {name: script.sha for name, script in scripts.items()}
    gone: list[str] = []
    try:
        async with client.pipeline(transaction=False) as pipe:
            for script in scripts.values():
                pipe.script_load(script.source)
            await pipe.execute()
        # EVAL and not EVALSHA: nobody's SCRIPT FLUSH can come between.
        await client.execute_command("EVAL", scripts["setup"].source, 2, namespace, f"{namespace}:meta")
        library = library_of(scripts)
        if library and form != "scripts" and await load_library(client, library, form):
            fields |= _library_fields(version, library)
            current |= {"library": library.name, "functions": _listed(library)}
        if make_current:
            fields |= current
            # What this version no longer has must not be found under its bare name.
            present = {_text(field) for field in await client.hkeys(manifest)}
            gone = [field for field in present if not set(field) & set("/:") and field not in current]
            if "library" in current:
                gone += await _prune(client, manifest, present, current)
        async with client.pipeline(transaction=True) as pipe:
            if gone:
                pipe.hdel(manifest, *gone)
            pipe.hset(manifest, mapping=fields)
            await pipe.execute()
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    return version


def _listed(library: Library) -> str:
    return " ".join(sorted(library.functions))


def _library_fields(version: str, library: Library) -> dict[Any, Any]:
    return {
        f"{version}/library": library.name,
        f"{version}/functions": _listed(library),
        f"source:{library.name}": library.source,
    }


async def load_library(client: Redis, library: Library, form: Form) -> bool:
    """Whether the library's functions can be called, which are loaded if need be.

    A user who may call functions need not be allowed to load them, if somebody else does. Raises RedisError,
    and NoFunctions when they cannot be called although ``form`` is "functions".
    """
    try:
        await client.execute_command("FUNCTION", "LOAD", library.source)
    except ResponseError as refusal:
        if not ("already exists" in str(refusal) or refuses_functions(refusal)):
            raise
    problem = await _called_wrongly(client, library)
    is_callable = not (is_missing_function(problem) or refuses_functions(problem))
    if not is_callable and form == "functions":
        raise NoFunctions(problem)
    return is_callable


async def has_functions(client: Redis, library: Library) -> bool:
    """Whether functions can be called, once they are loaded. Raises RedisError."""
    return not refuses_functions(await _called_wrongly(client, library))


async def _called_wrongly(client: Redis, library: Library) -> Exception:
    """The error reply to a call that gives no namespace, which is refused before anything else."""
    try:
        reply = await client.execute_command("FCALL", f"{library.name}_{min(library.functions)}", 0)
    except ResponseError as problem:
        return problem
    raise AssertionError(f"accepted: {reply!r}")


def refuses_functions(problem: Any) -> bool:
    """Whether a reply says that the server has no functions, or that this user may not use them."""
    text = str(problem)
    if isinstance(problem, NoPermissionError):
        return "'fcall" in text or "'function" in text
    return isinstance(problem, ResponseError) and _NO_FUNCTIONS.match(text) is not None


def is_missing_function(problem: Any) -> bool:
    """Whether a reply says that there is no such function."""
    return isinstance(problem, ResponseError) and str(problem).startswith("Function not found")


async def _prune(client: Redis, manifest: str, present: set[str], current: Mapping[str, str]) -> list[str]:
    """Delete the libraries of the versions before the last; the fields of the manifest that tell of them.

    Clients of the version before may still be at work. Who is older loads its library again on a miss.
    """
    before = _text(await client.hget(manifest, "version") or b"")
    if before in ("", current["version"]):
        return []
    fields = [field for field in present if field.endswith("/library")]
    names = [_text(name or b"") for name in await client.hmget(manifest, fields)] if fields else []
    libraries = dict(zip(fields, names, strict=True))
    kept = {current["library"], libraries.get(f"{before}/library")}
    try:
        for name in set(names) - kept:
            try:
                await client.execute_command("FUNCTION", "DELETE", name)
            except ResponseError as problem:
                if "not found" not in str(problem):
                    raise
    except NoPermissionError:
        log.info("old libraries stay: FUNCTION DELETE is not permitted")
        return []
    old = {field: name for field, name in libraries.items() if name not in kept}
    return [
        *old,
        *(field.replace("/library", "/functions") for field in old),
        *(f"source:{name}" for name in set(old.values())),
    ]


async def bring_library(
    client: Redis, namespace: str, scripts: Mapping[str, Script], library: Library, form: Form
) -> bool:
    """As ``load_library``, for one that is missing. The manifest tells of it, so that it goes one day."""
    if not await load_library(client, library, form):
        return False
    manifest = f"{namespace}:manifest"
    if await client.hexists(manifest, "version"):
        await client.hset(manifest, mapping=_library_fields(version_of(scripts), library))
    return True


async def fetch(client: Redis, namespace: str, version: str | None = None) -> Bundle:
    """Read a namespace's scripts, and their library if it is there, out of its manifest: the current
    version's, or those of ``version``.

    For clients that must not bring scripts of their own. Raises LookupError, Unavailable.
    """
    check_namespace(namespace)
    try:
        raw = await client.hgetall(f"{namespace}:manifest")
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    manifest = {_text(field): _text(value) for field, value in raw.items()}
    prefix = f"{version or manifest.get('version')}/"
    own = {field.removeprefix(prefix): said for field, said in manifest.items() if field.startswith(prefix)}
    shas = {name: sha for name, sha in own.items() if name not in _NOT_SCRIPTS}
    if not shas:
        raise LookupError(f"the manifest of namespace {namespace} has no scripts of version {version or 'any'}")
    scripts = Bundle(
        (name, Script(name, manifest[f"source:{sha}"], sha, manifest[f"flags:{sha}"])) for name, sha in shas.items()
    )
    if "library" in own:
        name = own["library"]
        scripts.library = Library(name, manifest[f"source:{name}"], frozenset(own["functions"].split()))
    return scripts


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
