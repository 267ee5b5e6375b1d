"""Redis CPU time of a series of calls."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from kit.wire import Wire

Cost = dict[str, float]
"""cpu_us and script_us per job, jobs per second"""


def measured(wire: Wire, jobs: int, action: Callable[[], Any]) -> tuple[Any, Cost]:
    """Run ``action``, which handles ``jobs`` jobs; CPU time comes from INFO, user and system."""
    wire.call("CONFIG", "RESETSTAT")
    cpu_us, started = wire.cpu_us(), time.perf_counter()
    result = action()
    took_s = time.perf_counter() - started
    cpu_us = wire.cpu_us() - cpu_us
    return result, {
        "cpu_us": cpu_us / jobs,
        "script_us": wire.script_us()[1] / jobs,
        "per_s": jobs / took_s,
    }


def medians(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of every figure over rounds of the same shape."""
    first = rounds[0]
    return {
        key: medians([r[key] for r in rounds]) if isinstance(first[key], dict) else median(r[key] for r in rounds)
        for key in first
    }


def total(costs: list[Cost]) -> Cost:
    """One after the other."""
    return {
        "cpu_us": sum(cost["cpu_us"] for cost in costs),
        "script_us": sum(cost["script_us"] for cost in costs),
        "per_s": 1 / sum(1 / cost["per_s"] for cost in costs),
    }
