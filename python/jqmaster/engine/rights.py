"""What Redis has to grant a user for each role, as rules of ACL SETUSER (docs/operating.md, "A user for each role").

Scripts and functions run with the rights of their caller. So a user gets the scripts of its role, each by its sha and
name, and the commands within them. Of these Redis cannot tell whether a script or the user sends them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable

from jqmaster.bundle.build import Bundle, Script
from jqmaster.engine.manifest import NOTE, SHARED
from jqmaster.manifest.contract import ROLES, ROLES_OF, SERVER, Role
from jqmaster.manifest.manifest import operations

READS = frozenset(
    """exists get getrange hexists hget hgetall hkeys hlen hmget hscan hvals info mget pttl scan srandmember sscan
    strlen time type zcard zcount zmscore zrange zrangebylex zrangebyscore zrank zscan zscore""".split()
)
WRITES = frozenset(
    """append del expire hdel hset mset pexpire sadd set setrange spublish srem unlink xadd zadd
    zpopmin zrem zremrangebyscore""".split()
)
"""With `READS` all commands that the scripts call."""

SEAL = "/sessions"
"""Behind the namespace: the key with the secret that servers seal sessions with. It is none of the namespace's own, so
no script reads it, no export has it, and of users by role only an admin may."""

_WORD = re.compile("[\"']([A-Z]+)[\"']")
# What clients send beside the scripts: to load those that are missing, to listen, to wait for work, events, replicas.
_ALL = """script|load hget hmget hexists exists time ping ssubscribe sunsubscribe xread xrange xrevrange
    cluster|slots"""
_BESIDE: dict[Role, str] = {
    "pusher": "pexpire", "worker": "bzpopmin pexpire",
    "admin": "function|load function|list function|delete hset info",
}  # fmt: skip


def roles_of(script: Script) -> frozenset[Role]:
    """Who may call it: who may do all that it can do, as Redis sees no spec. A viewer may call nothing that could
    write."""
    operation = operations()[script.name]
    kept = [name for name, roles in operation.restricted.items() if roles != (SERVER,)]
    found = {role for role in ROLES if role == "admin" or not operation.lacking(frozenset((role,)), kept)}
    return frozenset(found if script.flags == "read" else found - {"viewer"})


def scripts_of(role: Role, scripts: Bundle) -> list[str]:
    """The names of those that the role may call, in order."""
    return sorted(name for name, script in scripts.items() if role in roles_of(script))


def rules(role: Role, namespace: str, scripts: Bundle) -> list[str]:
    """What to grant, keys and channels first. Rules of several roles, and of several versions, add up."""
    names = scripts_of(role, scripts)
    commands = {*_ALL.split(), *(word for one in ROLES_OF[role] for word in _BESIDE.get(one, "").split())}
    for name in names:
        inner = READS if scripts[name].flags == "read" else READS | WRITES
        commands |= {word.lower() for word in _WORD.findall(scripts[name].source)} & inner
    if "info" in commands and role != "admin":  # scripts ask which server this is
        commands = commands - {"info"} | {"info|server"}
    called = [f"evalsha|{scripts[name].sha}" for name in names]
    if library := scripts.library:
        called += [f"fcall|{library.name}_{name}" for name in names if name in library.functions]
    if role == "admin":
        called.append(f"evalsha|{hashlib.sha1(NOTE.encode()).hexdigest()}")
    inside = re.sub(r"[][\\*?]", r"\\\g<0>", namespace)
    keys = [f"~{inside}", f"~{inside}:*", f"{'' if role == 'admin' else '%R'}~{SHARED}", f"&{inside}:*"]
    if role == "admin":
        keys.append(f"~{inside}{SEAL}")
    return [*keys, *(f"+{command}" for command in (*sorted(commands), *called))]


def line(user: str, granted: Iterable[str], *, replace: bool = False) -> str:
    """The command, as redis-cli reads it from its input. ``replace``: what the user was granted before goes."""
    first = ["on", "resetkeys", "resetchannels", "-@all"] if replace else ["on"]
    return " ".join(_quoted(word) for word in ("ACL", "SETUSER", user, *first, *dict.fromkeys(granted)))


def _quoted(word: str) -> str:
    return json.dumps(word, ensure_ascii=False) if re.search(r"[\"'\\\s]", word) else word
