"""What Redis has to grant a user for each role, as rules of ACL SETUSER (docs/operating.md, "A user for each role").

Scripts and functions run with the rights of their caller. So a user gets the scripts of its role, each by its sha and
name, and the commands within them. Of these Redis cannot tell whether a script or the user sends them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping

from jqmaster.bundle.build import Script, library_of
from jqmaster.engine.manifest import NOTE, SHARED
from jqmaster.wire.operation import ROLES, Role
from jqmaster.wire.operations import OPERATIONS

READS = frozenset(
    """exists get hexists hget hgetall hkeys hlen hmget hscan hvals info llen lrange mget pttl scan srandmember sscan
    time type xrange zcard zcount zmscore zrange zrangebylex zrangebyscore zrank zscore""".split()
)
WRITES = frozenset(
    """append del expire hdel hset incr lpop mset pexpire rpush sadd set setrange spublish srem unlink xadd zadd zpopmin
    zrem zremrangebyscore""".split()
)
"""With `READS` all commands that the scripts call."""

_INCLUDED: dict[Role, tuple[Role, ...]] = {
    "viewer": ("viewer",), "pusher": ("viewer", "pusher"), "worker": ("viewer", "worker"),
    "operator": ("viewer", "pusher", "operator"), "admin": ROLES,
}  # fmt: skip
_WORD = re.compile("[\"']([A-Z]+)[\"']")
# Scripts of which the table of operations says nothing. All others are called by masters, or by who loads.
_UNLISTED: dict[str, Role] = {"audit": "operator", "tick": "worker"}
# What clients send beside the scripts: to load those that are missing, to listen, to wait for work, events, replicas.
_BESIDE: dict[Role, str] = {
    "viewer": "script|load hget hmget hexists exists time ping ssubscribe sunsubscribe xread xrange xrevrange "
    "cluster|slots",
    "pusher": "set pexpire wait",
    "worker": "bzpopmin pexpire",
    "operator": "",
    "admin": "function|load function|delete hset info",
}


def needed_role(script: Script) -> Role:
    """Who may call it. The most powerful thing that it can do decides, as Redis sees no spec. A viewer may call
    nothing that could write."""
    said = {one.role for one in OPERATIONS.values() if one.script == script.name and one.role}
    if not said:
        return _UNLISTED.get(script.name, "admin")
    most = max(said, key=ROLES.index)
    return "pusher" if most == "viewer" and script.flags != "read" else most


def scripts_of(role: Role, scripts: Mapping[str, Script]) -> list[str]:
    """The names of those that the role may call, in order."""
    return sorted(name for name, script in scripts.items() if needed_role(script) in _INCLUDED[role])


def rules(role: Role, namespace: str, scripts: Mapping[str, Script]) -> list[str]:
    """What to grant, keys and channels first. Rules of several roles, and of several versions, add up."""
    names = scripts_of(role, scripts)
    commands = {word for one in _INCLUDED[role] for word in _BESIDE[one].split()}
    for name in names:
        inner = READS if scripts[name].flags == "read" else READS | WRITES
        commands |= {word.lower() for word in _WORD.findall(scripts[name].source)} & inner
    if "info" in commands and role != "admin":  # scripts ask which server this is
        commands = commands - {"info"} | {"info|server"}
    called = [f"evalsha|{scripts[name].sha}" for name in names]
    if library := library_of(scripts):
        called += [f"fcall|{library.name}_{name}" for name in names if name in library.functions]
    if role == "admin":
        called.append(f"evalsha|{hashlib.sha1(NOTE.encode()).hexdigest()}")
    inside = re.sub(r"[][\\*?]", r"\\\g<0>", namespace)
    keys = [f"~{inside}", f"~{inside}:*", f"{'' if role == 'admin' else '%R'}~{SHARED}", f"&{inside}:*"]
    return [*keys, *(f"+{command}" for command in (*sorted(commands), *called))]


def line(user: str, granted: Iterable[str], *, replace: bool = False) -> str:
    """The command, as redis-cli reads it from its input. ``replace``: what the user was granted before goes."""
    first = ["on", "resetkeys", "resetchannels", "-@all"] if replace else ["on"]
    return " ".join(_quoted(word) for word in ("ACL", "SETUSER", user, *first, *dict.fromkeys(granted)))


def _quoted(word: str) -> str:
    if not re.search(r"[\"'\\\s]", word):
        return word
    return '"' + re.sub(r'["\\]', r"\\\g<0>", word) + '"'
