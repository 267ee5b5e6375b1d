"""Rows of the longest calls, each at its allowed most, on data made for it; `bench/parts/bounds.py` times them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgpack
from kit.contenders import NAME
from kit.hostile import ALL, LONG_S, Hostile, long

CALLS = 5
"""of a row; their median counts."""
MANY = CALLS * ALL
TAGS = [long(f"tag{number}") for number in range(32)]
ERROR = msgpack.packb("e" * 10_000)
FAILURE = {"type": "failure", "should_retry": False}


@dataclass(frozen=True)
class Row:
    what: str
    operation: str
    run: Callable[[Hostile], None]
    is_sized: bool
    """by the caller, who names each job, or took so many: it is told, and not bounded"""


ROWS: list[Row] = []


def row(what: str, is_sized: bool = False) -> Callable[[Callable[[Hostile], None]], Callable[[Hostile], None]]:
    def add(run: Callable[[Hostile], None]) -> Callable[[Hostile], None]:
        ROWS.append(Row(what, what.split()[0].rstrip(":,"), run, is_sized))
        return run

    return add


def ticks(jq: Hostile) -> None:
    for _ in range(CALLS):
        jq.measured("tick", {"limit": ALL})


def pages(jq: Hostile, operation: str, **spec: Any) -> None:
    cursor = {}
    for _ in range(CALLS):
        reply = jq.measured(operation, {"count": ALL} | spec | cursor)
        cursor = {"cursor": reply[0].decode()}


def limited(jq: Hostile, **spec: Any) -> None:
    given = {"id": "limit", "concurrency": 1_000_000, "by": "argument"} | spec
    jq.call("constrain", given, {"name": NAME})
    jq.settle()


def keyed(jq: Hostile, **spec: Any) -> None:
    """A key of its own for each of many jobs; half of them run."""
    limited(jq, **spec)
    for first in range(0, MANY, ALL // 2):
        arguments = []
        for number in range(first, first + ALL // 2):
            arguments += [{"name": NAME, "timeout": LONG_S}, msgpack.packb(long(f"{number}"))] * 2
        jq.call("enqueue", *arguments)
    jq.start(MANY)
