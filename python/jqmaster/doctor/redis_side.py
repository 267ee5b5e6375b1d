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
from jqmaster.engine.engine import Engine
from jqmaster.engine.replies import Document
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


def finding(kind: str, level: str, text: str, means: str = "", advice: str = "", **values: Any) -> Document:
    """As an alert; `means`: what comes of it."""
    told = {"kind": kind, "level": level, "text": text, "means": means, "advice": advice, "values": values}
    return {name: value for name, value in told.items() if value}


def findings(server: Server) -> Iterator[Document]:
    """What each check finds. Those that look after something say so where all is well."""
    for check in (_version, _eviction, _memory, _persistence, _role, _clock, _namespace, _scripts, _form, _slowness):
        yield from check(server)
    for difference in server.differences:
        means = "A call that changes all partitions did not reach that one."
        yield finding("partitions", "problem", difference, means, "Repeat it; it may be done twice.")


def _version(server: Server) -> Iterator[Document]:
    version = str(server.info.get("redis_version", ""))
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if not numbers:
        text, advice = "Redis does not tell its version", "Allow the command INFO to see it."
        yield finding("redis", "note", text, "7.0 or newer is needed.", advice)
    elif numbers < (7, 0):
        yield finding(
            "redis", "problem", f"Redis {version} is too old", "JQ's scripts need 7.0 or newer.", "Upgrade Redis."
        )
    else:
        yield finding("redis", "ok", f"Redis {version}", version=version)


def _eviction(server: Server) -> Iterator[Document]:
    policy = server.info.get("maxmemory_policy")
    if policy == "noeviction":
        yield finding("eviction", "ok", "maxmemory-policy is noeviction")
    elif policy is None:
        text, means = "Redis does not tell its maxmemory-policy", "It must be noeviction."
        yield finding("eviction", "note", text, means, "Allow the command INFO.")
    else:
        advice = "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf."
        means = "When memory is short Redis drops keys: jobs vanish."
        yield finding("eviction", "problem", f"maxmemory-policy is {policy}", means, advice)


def _memory(server: Server) -> Iterator[Document]:
    used, limit = int(server.info.get("used_memory", 0)), int(server.info.get("maxmemory") or 0)
    bound = limit or int(server.info.get("total_system_memory") or 0)
    if not used or not bound:
        return
    share, name = used / bound, "maxmemory" if limit else "the host's memory"
    means = "When it is full, enqueueing is refused with OOM; what drains the queues still works."
    if not limit:
        means = "Without maxmemory the kernel may kill Redis when memory is short."
    advice = "Give Redis more memory, or keep less: `jqmaster config` (done_ttl, result_ttl, …)."
    level = "ok" if share < 0.8 else "warning" if share < 0.95 else "problem"
    text = f"{used / 1e6:,.0f} MB used, {share:.0%} of {name}"
    yield finding("memory", level, text, *((means, advice) if level != "ok" else ()), used=used, limit=limit)


def _persistence(server: Server) -> Iterator[Document]:
    info, advice = server.info, "CONFIG SET appendonly yes, and the same in redis.conf."
    failed = [name for name in info if re.fullmatch("(aof|rdb)_last_.*status", name) and info[name] != "ok"]
    if failed:
        text, means = f"writing to disk failed ({failed[0]})", "Redis may refuse writes, and a restart would lose jobs."
        yield finding("persistence", "problem", text, means, "See Redis's log; often the disk is full.")
    elif int(info.get("aof_enabled", 0)):
        yield finding("persistence", "ok", "append-only file is on")
    elif "aof_enabled" in info and server.config.get("save", "?") == "":
        means = "When Redis restarts all jobs are gone."
        yield finding("persistence", "warning", "nothing is written to disk", means, advice)
    elif "aof_enabled" in info:
        means = "A crash loses what came after the last one."
        yield finding("persistence", "note", "only snapshots are written to disk", means, advice)


def _role(server: Server) -> Iterator[Document]:
    if server.info.get("role") == "slave":
        advice = "Name the primary in --redis and JQ_REDIS."
        yield finding("role", "problem", "this Redis is a replica", "It refuses every write.", advice)


def _clock(server: Server) -> Iterator[Document]:
    off = abs(server.ahead_ms)
    if off < FAR_MS:
        yield finding("clock", "ok", "Redis's clock and this host's agree")
        return
    text = f"Redis's clock is {off / 1000:,.1f} s {'ahead of' if server.ahead_ms > 0 else 'behind'} this host's"
    means = "JQ goes by Redis's clock: moments (run_at, schedules) seem to come at the wrong time."
    level, advice = "problem" if off >= VERY_FAR_MS else "warning", "Have both hosts keep their time by NTP."
    yield finding("clock", level, text, means, advice, ahead_ms=round(server.ahead_ms))


def _namespace(server: Server) -> Iterator[Document]:
    if server.taken:
        text = f"there is a key named {server.taken}, which no namespace may have"
        means = "While its cluster slot moves scripts would run on half a key space; nobody sets up a namespace there."
        yield finding("namespace", "problem", text, means, f"See what wrote it, then UNLINK '{server.taken}'.")


def _scripts(server: Server) -> Iterator[Document]:
    if server.trouble:
        advice = "`jqmaster load` sets up one that is missing; data of another schema needs the version that wrote it."
        yield finding("scripts", "problem", "the scripts refuse this namespace", server.trouble, advice)
    elif server.current is None:
        means = "Clients in other languages find none."
        yield finding("scripts", "warning", "no scripts are in the manifest", means, "`jqmaster load`")
    elif server.current != server.own:
        text = f"scripts {server.current} are current, this package has {server.own}"
        means = "Versions stand side by side; during an upgrade that is as it should be."
        yield finding("scripts", "note", text, means, "When the upgrade is over: `jqmaster load`.")
    else:
        yield finding("scripts", "ok", "the scripts are loaded and current")


def _form(server: Server) -> Iterator[Document]:
    text = f"operations are called as {server.form}"
    if server.form == "functions" or server.wants == "scripts":
        yield finding("form", "ok", text)
    else:
        means = "This Redis has no functions, or does not let this user call them. Scripts do the same for more CPU."
        advice = "Permit +fcall, and +function|load to who loads; docs/operating.md has the whole user."
        yield finding("form", "problem" if server.wants == "functions" else "note", text, means, advice)


def _slowness(server: Server) -> Iterator[Document]:
    if not server.slow:
        yield finding("slow", "ok", "no slow calls in the last hour")
        return
    count, worst = len(server.slow), max(took for _, took, _ in server.slow)
    text = f"at least {count} slow {'call' if count == 1 else 'calls'} in the last hour, of up to {worst:.0f} ms"
    advice = "Often the host is short of CPU, swaps or forks; see SLOWLOG GET and LATENCY DOCTOR."
    level, means = "note" if worst < 100 else "warning", "While a script runs Redis does nothing else."
    yield finding("slow", level, text, means, advice, count=count, worst_ms=worst)
