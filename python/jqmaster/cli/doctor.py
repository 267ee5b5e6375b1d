"""`doctor`: what is wrong, and what to do: a namespace's alerts, and settings of Redis by which jobs would be lost."""

from __future__ import annotations

import re
import textwrap
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from jqmaster.cli import show
from jqmaster.cli.kinds import option
from jqmaster.cli.reach import connect, current
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK, Coded

if TYPE_CHECKING:
    from jqmaster.engine.engine import Engine, Operations

Finding = dict[str, Any]
_MARKS = {"problem": ("✗", "red"), "warning": ("!", "yellow"), "note": ("·", "blue")}


def doctor(*, quiet: Annotated[bool, option("only problems and warnings")] = False) -> Coded:
    """Look for problems and say what to do.

    Exit code 1 if there is a problem or a warning. By way of a server Redis itself is not looked at: give --redis for
    that. Nothing is changed.
    """
    findings = connect().ask(_look)
    if quiet:
        findings = [finding for finding in findings if finding["level"] != "note"]
    yield findings, lambda: _print(findings)
    return EXIT_FAILED if any(finding["level"] != "note" for finding in findings) else EXIT_OK


async def _look(engine: Operations) -> list[Finding]:
    """As alerts: `level`, `kind`, `text`, `advice`; the worst first."""
    from jqmaster.engine import alerts
    from jqmaster.engine.engine import Engine

    found = [*await alerts.every(engine)]
    if isinstance(engine, Engine):
        found += of_redis(*await asked(engine))
        for difference in await differences(engine):
            found.append(_finding("problem", "partitions", difference, "Repeat the call that changed it."))
    return sorted(found, key=lambda finding: list(_MARKS).index(finding["level"]))


# What is set alike in all partitions of a cluster, beside the settings: listings, what names a thing, which fields.
_SET = {
    "queues": ("name", "paused", "max_waiting", "fair", "settings"),
    "constraints": ("id", "match", "by", "concurrency", "rate", "shared"),
    "keys": ("id", "digest", "roles", "queues"),
}


async def differences(engine: Engine) -> list[str]:
    """What is set otherwise in some partitions of a cluster than in the first."""
    if len(engine.engines) == 1:
        return []
    first, *others = [await _set_in(part) for part in engine.engines]
    return [
        f"{what} is not in partition {number} what it is in partition 0"
        for number, other in enumerate(others, 1)
        for what in sorted(first.keys() | other.keys())
        if first.get(what) != other.get(what)
    ]


async def _set_in(engine: Engine) -> dict[str, Any]:
    """What is set in a namespace, by what it is."""
    found: dict[str, Any] = {f"setting {name}": value for name, value in (await engine.config()).items()}
    for listing, (name, *fields) in _SET.items():
        more = {"digests": True} if listing == "keys" else {}
        async for document in engine.each(listing, count=1000, **more):
            # A queue may be known in some for which nothing is set.
            if is_set := {field: document[field] for field in fields if document.get(field)}:
                found[f"{listing.removesuffix('s')} {document[name]}"] = is_set
    return found


async def asked(engine: Engine) -> tuple[dict[str, Any], str | None, float]:
    """INFO, the setting `save`, and by how many seconds Redis' clock is ahead. Raises Unavailable; what Redis forbids
    is left out."""
    import redis.exceptions

    from jqmaster.errors import from_redis

    info: dict[str, Any] = {}
    save = None
    try:
        seconds, micros = await engine.redis.time()
        ahead_s = seconds + micros / 1e6 - time.time()
        try:
            for section in ("memory", "persistence", "replication"):
                info |= await engine.redis.info(section)
            config: dict[Any, Any] = await engine.redis.config_get("save")
            save = config.get(b"save", b"").decode()
        except redis.exceptions.ResponseError:  # managed servers forbid some
            pass
    except redis.exceptions.RedisError as problem:
        raise from_redis(problem) from problem
    return info, save, ahead_s


def of_redis(info: dict[str, Any], save: str | None, ahead_s: float) -> Iterator[Finding]:
    """What is wrong with a Redis that says this of itself."""
    if (policy := info.get("maxmemory_policy", "noeviction")) != "noeviction":
        text = f"maxmemory-policy is {policy}: when memory is short Redis drops jobs"
        yield _finding("problem", "eviction", text, "CONFIG SET maxmemory-policy noeviction, and in redis.conf.")
    limit = int(info.get("maxmemory") or info.get("total_system_memory") or 0)
    if limit and (share := int(info.get("used_memory", 0)) / limit) >= 0.8:
        text = f"{share:.0%} of Redis' memory is used: when it is full, enqueueing is refused"
        advice = "Give Redis more memory, or keep less: `jqmaster config` (done_ttl, result_ttl, …)."
        yield _finding("warning" if share < 0.95 else "problem", "memory", text, advice)
    if failed := [name for name in info if re.fullmatch("(aof|rdb)_last_.*status", name) and info[name] != "ok"]:
        text = f"writing to disk failed ({failed[0]}): a restart would lose jobs"
        yield _finding("problem", "persistence", text, "See Redis's log; often the disk is full.")
    elif info.get("aof_enabled") == 0 and save is not None:
        text = "only snapshots are written to disk: a crash loses what came after the last one"
        if not save:
            text = "nothing is written to disk: when Redis restarts all jobs are gone"
        advice = "CONFIG SET appendonly yes, and the same in redis.conf."
        yield _finding("note" if save else "warning", "persistence", text, advice)
    if info.get("role") == "slave":
        yield _finding("problem", "role", "this Redis is a replica: it refuses every write", "Name the primary.")
    if abs(ahead_s) >= 1:
        text = f"Redis's clock is {abs(ahead_s):,.1f} s {'ahead of' if ahead_s > 0 else 'behind'} this host's"
        advice = "JQ goes by Redis's clock. Have both hosts keep their time by NTP."
        yield _finding("warning" if abs(ahead_s) < 30 else "problem", "clock", text, advice)


def _finding(level: str, kind: str, text: str, advice: str) -> Finding:
    return {"level": level, "kind": kind, "text": text, "advice": advice}


def _print(findings: list[Finding]) -> None:
    """What is to be done about several of a kind is told once, behind them."""
    from rich.text import Text

    last = {(finding["level"], finding["kind"]): finding for finding in findings}
    for finding in findings:
        mark, style = _MARKS[finding["level"]]
        show.say(Text(f"{mark} {show.plain(finding['text'])}", style))
        if finding is last[finding["level"], finding["kind"]] and finding.get("advice"):
            print("\n    ".join(textwrap.wrap(f"  → {show.plain(finding['advice'])}", 94, break_on_hyphens=False)))
    if current.get().server()[1] is None:
        print("· Redis itself was not looked at; --redis URL does")
    levels = [finding["level"] for finding in findings]
    counts = [show.counted(levels.count(level), level) for level in ("problem", "warning") if level in levels]
    print(f"{current.get()}: {', '.join(counts) or 'all well'}")
