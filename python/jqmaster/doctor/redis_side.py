"""What `doctor` looks at in Redis itself."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import redis.exceptions
from redis.asyncio import Redis

from jqmaster.bundle.build import version_of
from jqmaster.doctor.finding import Checks, Found
from jqmaster.engine.engine import Engine
from jqmaster.engine.scripts import Form
from jqmaster.errors import JQError, from_redis

_HOUR_MS = 3_600_000
FAR_MS, VERY_FAR_MS = 1_000, 30_000
SLOW_MS = 10


@dataclass
class Server:
    """What was found. Maps are empty where Redis does not tell."""

    now_ms: int
    ahead_ms: float  # Redis's clock, of this host's
    info: dict[str, Any] = field(default_factory=dict)
    config: dict[str, str] = field(default_factory=dict)
    current: str | None = None  # version of the scripts that is current in the namespace
    own: str = ""  # version of this package's
    form: str = "functions"  # in which operations are called: functions or scripts
    wants: Form = "auto"  # what was asked for
    trouble: str = ""  # why the scripts refuse
    taken: str = ""  # the namespace, when there is a key of its name
    differences: list[str] = field(default_factory=list)  # between the partitions of a cluster
    slow: list[tuple[int, float, str]] = field(default_factory=list)  # (when, how long in ms, command)


async def look(caller: Engine) -> Server:
    """Raises Unavailable when Redis cannot be asked at all; what it forbids is left out."""
    client = caller.redis
    try:
        before = time.time()
        seconds, micros = await client.time()
        middle = (before + time.time()) / 2
        now = seconds + micros / 1e6
        server = Server(int(now * 1000), (now - middle) * 1000, own=version_of(caller.scripts))
        for section in ("server", "memory", "persistence", "replication"):
            server.info |= await _allowed(client.info(section)) or {}
        raw = await _allowed(client.config_get("save")) or {}
        server.config = {_text(name): _text(value) for name, value in raw.items()}
        current = await client.hget(f"{caller.namespace}:manifest", "version")
        server.current = None if current is None else _text(current)
        server.taken = caller.namespace if await client.exists(caller.namespace) else ""
        server.slow = await _slow(client, caller.namespace, server.now_ms)
        server.form, server.wants = await caller.form_in_use(), caller.form
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    try:
        await caller.raw("queues", b"\x81\xa5count\x01")  # which every user that may look may call
        server.differences = await caller.differences()
    except JQError as error:
        server.trouble = str(error)
    return server


async def _allowed(asking: Any) -> Any:
    try:
        return await asking
    except redis.exceptions.ResponseError:  # managed servers forbid some
        return None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


async def _slow(client: Redis, namespace: str, now_ms: int) -> list[tuple[int, float, str]]:
    """Slow commands of the last hour that concern the namespace."""
    found = []
    for entry in await _allowed(client.slowlog_get(128)) or []:
        command = _text(entry["command"])
        began_ms, took_ms = int(entry["start_time"]) * 1000, entry["duration"] / 1000
        if namespace in command and took_ms >= SLOW_MS and now_ms - began_ms <= _HOUR_MS:
            found.append((began_ms, took_ms, command))
    return found


# -- checks ---------------------------------------------------------------------------------------


check = Checks()


@check("redis")
def _version(server: Server) -> Iterator[Found]:
    version = str(server.info.get("redis_version", ""))
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if not numbers:
        yield "note", "Redis does not tell its version", "7.0 or newer is needed.", "Allow the command INFO to see it."
    elif numbers < (7, 0):
        yield "problem", f"Redis {version} is too old", "JQ's scripts need 7.0 or newer.", "Upgrade Redis."
    else:
        yield "ok", f"Redis {version}", "", "", None, {"version": version}


@check("eviction", "maxmemory-policy is noeviction")
def _eviction(server: Server) -> Iterator[Found]:
    policy = server.info.get("maxmemory_policy")
    if policy is None:
        yield "note", "Redis does not tell its maxmemory-policy", "It must be noeviction.", "Allow the command INFO."
    elif policy != "noeviction":
        do = "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf."
        yield "problem", f"maxmemory-policy is {policy}", "When memory is short Redis drops keys: jobs vanish.", do


@check("memory")
def _memory(server: Server) -> Iterator[Found]:
    used, limit = int(server.info.get("used_memory", 0)), int(server.info.get("maxmemory") or 0)
    bound = limit or int(server.info.get("total_system_memory") or 0)
    if not used or not bound:
        return
    share, name = used / bound, "maxmemory" if limit else "the host's memory"
    means = "When it is full, enqueueing is refused with OOM; what drains the queues still works."
    if not limit:
        means = "Without maxmemory the kernel may kill Redis when memory is short."
    do = "Give Redis more memory, or keep less: `jqmaster config` (done_ttl, result_ttl, …)."
    level = "ok" if share < 0.8 else "warning" if share < 0.95 else "problem"
    title = f"{used / 1e6:,.0f} MB used, {share:.0%} of {name}"
    yield (level, title, *((means, do) if level != "ok" else ("", "")), None, {"used": used, "limit": limit})


@check("persistence")
def _persistence(server: Server) -> Iterator[Found]:
    info, do = server.info, "CONFIG SET appendonly yes, and the same in redis.conf."
    failed = [name for name in info if re.fullmatch("(aof|rdb)_last_.*status", name) and info[name] != "ok"]
    if failed:
        means = "Redis may refuse writes (MISCONF), and a restart would lose jobs."
        yield "problem", f"writing to disk failed ({failed[0]})", means, "See Redis's log; often the disk is full."
    elif int(info.get("aof_enabled", 0)):
        yield "ok", "append-only file is on"
    elif "aof_enabled" in info and server.config.get("save", "?") == "":
        yield "warning", "nothing is written to disk", "When Redis restarts all jobs are gone.", do
    elif "aof_enabled" in info:
        yield "note", "only snapshots are written to disk", "A crash loses what came after the last one.", do


@check("role")
def _role(server: Server) -> Iterator[Found]:
    if server.info.get("role") == "slave":
        do = "Name the primary in --redis and JQ_REDIS."
        yield "problem", "this Redis is a replica", "It refuses every write.", do


@check("clock", "Redis's clock and this host's agree")
def _clock(server: Server) -> Iterator[Found]:
    off = abs(server.ahead_ms)
    if off >= FAR_MS:
        title = f"Redis's clock is {off / 1000:,.1f} s {'ahead of' if server.ahead_ms > 0 else 'behind'} this host's"
        means = "JQ goes by Redis's clock: moments (run_at, schedules) seem to come at the wrong time."
        level, do = "problem" if off >= VERY_FAR_MS else "warning", "Have both hosts keep their time by NTP."
        yield level, title, means, do, None, {"ahead_ms": round(server.ahead_ms)}


@check("namespace")
def _namespace(server: Server) -> Iterator[Found]:
    if server.taken:
        title = f"there is a key named {server.taken}, which no namespace may have"
        means = "While its cluster slot moves scripts would run on half a key space; nobody sets up a namespace there."
        yield "problem", title, means, f"See what wrote it, then UNLINK '{server.taken}'."


@check("partitions")
def _partitions(server: Server) -> Iterator[Found]:
    for difference in server.differences:
        means = "A call that changes all partitions did not reach that one."
        yield "problem", difference, means, "Repeat it; it may be done twice."


@check("scripts", "the scripts are loaded and current")
def _scripts(server: Server) -> Iterator[Found]:
    if server.trouble:
        do = "`jqmaster load` sets up one that is missing; data of another schema needs the version that wrote it."
        yield "problem", "the scripts refuse this namespace", server.trouble, do
    elif server.current is None:
        yield "warning", "no scripts are in the manifest", "Clients in other languages find none.", "`jqmaster load`"
    elif server.current != server.own:
        title = f"scripts {server.current} are current, this package has {server.own}"
        means = "Versions stand side by side; during an upgrade that is as it should be."
        yield "note", title, means, "When the upgrade is over: `jqmaster load`."


@check("form")
def _form(server: Server) -> Iterator[Found]:
    title = f"operations are called as {server.form}"
    if server.form == "functions" or server.wants == "scripts":
        yield "ok", title
    else:
        means = "This Redis has no functions, or does not let this user call them. Scripts do the same for more CPU."
        do = "Permit +fcall, and +function|load to who loads; docs/operating.md has the whole user."
        level = "problem" if server.wants == "functions" else "note"
        yield level, title, means, do


@check("slow", "no slow calls in the last hour")
def _slowness(server: Server) -> Iterator[Found]:
    if server.slow:
        count, worst = len(server.slow), max(took for _, took, _ in server.slow)
        title = f"at least {count} slow {'call' if count == 1 else 'calls'} in the last hour, of up to {worst:.0f} ms"
        do = "Often the host is short of CPU, swaps or forks; see SLOWLOG GET and LATENCY DOCTOR."
        level, means = "note" if worst < 100 else "warning", "While a script runs Redis does nothing else."
        yield level, title, means, do, None, {"count": count, "worst_ms": worst}
