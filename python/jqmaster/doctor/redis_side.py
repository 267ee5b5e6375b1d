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
from jqmaster.doctor.finding import Finding, Level
from jqmaster.engine.calls import Caller
from jqmaster.engine.scripts import Form
from jqmaster.errors import JQError, from_redis

_HOUR_MS = 3_600_000
FAR_MS, VERY_FAR_MS = 1_000, 30_000
SLOW_MS = 10
_SECTIONS = ("server", "memory", "persistence", "replication")


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
    slow: list[tuple[int, float, str]] = field(default_factory=list)  # (when, how long in ms, command)


async def look(caller: Caller) -> Server:
    """Raises Unavailable when Redis cannot be asked at all; what it forbids is left out."""
    client = caller.redis
    try:
        before = time.time()
        seconds, micros = await client.time()
        middle = (before + time.time()) / 2
        now = seconds + micros / 1e6
        server = Server(int(now * 1000), (now - middle) * 1000, own=version_of(caller.scripts))
        for section in _SECTIONS:
            server.info |= await _allowed(client.info(section)) or {}
        for name in ("save", "timeout"):
            server.config |= _texts(await _allowed(client.config_get(name)) or {})
        current = await client.hget(f"{caller.namespace}:manifest", "version")
        server.current = None if current is None else _text(current)
        server.taken = caller.namespace if await client.exists(caller.namespace) else ""
        server.slow = await _slow(client, caller.namespace, server.now_ms)
        server.form, server.wants = await caller.form_in_use(), caller.form
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    try:
        await caller.call("queues", b"\x81\xa5count\x01")  # which every user may call
    except JQError as error:
        server.trouble = str(error)
    return server


async def _allowed(asking: Any) -> Any:
    try:
        return await asking
    except redis.exceptions.ResponseError:  # managed servers forbid some
        return None


def _texts(raw: dict[Any, Any]) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in raw.items()}


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


def check(server: Server) -> Iterator[Finding]:
    """One finding at least for each check."""
    for one in (_version, _eviction, _memory, _persistence, _role, _clock, _namespace, _scripts, _form, _slowness):
        yield from one(server)


def _make(check: str, level: Level, title: str, means: str = "", do: str = "", **values: Any) -> Finding:
    return Finding(check, level, title, means, do, None, values)


def _version(server: Server) -> Iterator[Finding]:
    version = str(server.info.get("redis_version", ""))
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if not numbers:
        do = "Allow the command INFO to see it."
        yield _make("redis", "note", "Redis does not tell its version", "7.0 or newer is needed.", do)
    elif numbers < (7, 0):
        means = "JQ's scripts need what came with 7.0."
        yield _make("redis", "problem", f"Redis {version} is too old", means, "Upgrade to 7.0 or newer.")
    else:
        yield _make("redis", "ok", f"Redis {version}", version=version)


def _eviction(server: Server) -> Iterator[Finding]:
    policy = server.info.get("maxmemory_policy")
    if policy is None:
        yield _make("eviction", "note", "Redis does not tell its maxmemory-policy", "It must be noeviction.")
    elif policy != "noeviction":
        yield _make(
            "eviction", "problem", f"maxmemory-policy is {policy}",
            "When memory is short Redis drops keys: jobs vanish.",
            "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf.",
        )  # fmt: skip
    else:
        yield _make("eviction", "ok", "maxmemory-policy is noeviction")


def _memory(server: Server) -> Iterator[Finding]:
    used = int(server.info.get("used_memory", 0))
    limit = int(server.info.get("maxmemory") or 0)
    system = int(server.info.get("total_system_memory") or 0)
    bound, name = (limit, "maxmemory") if limit else (system, "the host's memory")
    if not used or not bound:
        return
    share = used / bound
    title = f"{used / 1e6:,.0f} MB used, {share:.0%} of {name}"
    if share < 0.8:
        yield _make("memory", "ok", title, used=used, limit=limit)
        return
    means = "When it is full, enqueueing is refused with OOM; what drains the queues still works."
    if not limit:
        means = "Without maxmemory the kernel may kill Redis when memory is short."
    do = "Give Redis more memory, or keep less: `jqmaster config` (done_ttl, result_ttl, …)."
    yield _make("memory", "problem" if share >= 0.95 else "warning", title, means, do, used=used, limit=limit)


def _persistence(server: Server) -> Iterator[Finding]:
    info = server.info
    if "aof_enabled" not in info:
        return
    for name, what in (("aof_last_write_status", "writing the append-only file"),
                       ("aof_last_bgrewrite_status", "rewriting the append-only file"),
                       ("rdb_last_bgsave_status", "writing the last snapshot")):  # fmt: skip
        if info.get(name, "ok") != "ok":
            yield _make(
                "persistence", "problem", f"{what} failed",
                "Redis may refuse writes (MISCONF), and a restart would lose jobs.",
                "See Redis's log; often the disk is full.",
            )  # fmt: skip
            return
    if int(info["aof_enabled"]):
        yield _make("persistence", "ok", "append-only file is on")
    elif server.config.get("save", "?") == "":
        yield _make(
            "persistence", "warning", "nothing is written to disk",
            "When Redis restarts all jobs are gone.",
            "CONFIG SET appendonly yes, and the same in redis.conf.",
        )  # fmt: skip
    else:
        yield _make(
            "persistence", "note", "only snapshots are written to disk",
            "A crash loses what came after the last one.",
            "CONFIG SET appendonly yes loses a second at most.",
        )  # fmt: skip


def _role(server: Server) -> Iterator[Finding]:
    if server.info.get("role") == "slave":
        do = "Name the primary in --redis and JQ_REDIS."
        yield _make("role", "problem", "this Redis is a replica", "It refuses every write.", do)


def _clock(server: Server) -> Iterator[Finding]:
    off = abs(server.ahead_ms)
    side = "ahead of" if server.ahead_ms > 0 else "behind"
    if off < FAR_MS:
        yield _make("clock", "ok", "Redis's clock and this host's agree")
        return
    yield _make(
        "clock", "problem" if off >= VERY_FAR_MS else "warning",
        f"Redis's clock is {off / 1000:,.1f} s {side} this host's",
        "JQ goes by Redis's clock: moments (run_at, schedules) seem to come at the wrong time.",
        "Have both hosts keep their time by NTP.", ahead_ms=round(server.ahead_ms),
    )  # fmt: skip


def _namespace(server: Server) -> Iterator[Finding]:
    if server.taken:
        yield _make(
            "namespace", "problem", f"there is a key named {server.taken}, which no namespace may have",
            "While its cluster slot moves scripts would run on half a key space; `load` and `serve` refuse to start.",
            f"See what wrote it, then UNLINK '{server.taken}'.",
        )  # fmt: skip


def _scripts(server: Server) -> Iterator[Finding]:
    if server.trouble:
        do = "`jqmaster load` sets a namespace up; with --migrate it brings an older one up to date."
        yield _make("scripts", "problem", "the scripts refuse this namespace", server.trouble, do)
    elif server.current is None:
        means = "Clients in other languages find none."
        yield _make("scripts", "warning", "no scripts are in the manifest", means, "`jqmaster load` loads them.")
    elif server.current != server.own:
        yield _make(
            "scripts", "note", f"scripts {server.current} are current, this package has {server.own}",
            "Versions stand side by side; during an upgrade that is as it should be.",
            "When the upgrade is over: `jqmaster load`.", current=server.current, own=server.own,
        )  # fmt: skip
    else:
        yield _make("scripts", "ok", f"scripts {server.own} are loaded and current")


def _form(server: Server) -> Iterator[Finding]:
    title = f"operations are called as {server.form}"
    if server.form == "functions" or server.wants == "scripts":
        yield _make("form", "ok", title, form=server.form)
        return
    yield _make(
        "form", "problem" if server.wants == "functions" else "note", title,
        "This Redis has no functions, or does not let this user call them. Scripts do the same for more CPU.",
        "Permit +fcall, and +function|load to who loads; docs/operating.md has the whole user.",
        form=server.form,
    )  # fmt: skip


def _slowness(server: Server) -> Iterator[Finding]:
    if not server.slow:
        yield _make("slow", "ok", "no slow calls in the last hour")
        return
    worst = max(took for _, took, _ in server.slow)
    yield _make(
        "slow", "note" if worst < 100 else "warning",
        f"{len(server.slow)} slow calls in the last hour, the slowest took {worst:.0f} ms",
        "While a script runs Redis does nothing else.",
        "Often the host is short of CPU, swaps or forks; see SLOWLOG GET and LATENCY DOCTOR.",
        count=len(server.slow), worst_ms=worst,
    )  # fmt: skip
