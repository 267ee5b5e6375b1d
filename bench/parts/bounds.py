"""How long Redis is blocked by the longest single calls: each at its allowed most, on data made for it."""

from __future__ import annotations

from statistics import median
from typing import Any

import longest.changing
import longest.clock
import longest.looking
import longest.taking  # noqa: F401 - each adds its rows
from kit.hostile import Hostile
from kit.options import Options
from kit.report import Target, at_most, table
from kit.server import Server
from longest.row import CALLS, ROWS

LIMIT_MS = 10.0


def run(options: Options) -> list[dict[str, Any]]:
    found = []
    with Server() as server:
        wire = server.wire()
        for one in ROWS:
            if options.rows and not any(one.what.startswith(name) for name in options.rows):
                continue
            if options.targets and one.is_sized:
                continue
            result: dict[str, Any] = {"what": one.what, "is_sized": one.is_sized}
            for form in ("functions", "scripts"):
                jq = Hostile(wire, form)
                if form == "functions" and one.operation not in jq.functions:
                    continue
                one.run(jq)
                result[form] = median(jq.found_us) / 1000
                result[f"{form} most"] = max(jq.found_us) / 1000
            found.append(result)
            print(line(result), flush=True)
    return found


def line(found: dict[str, Any]) -> str:
    forms = [form for form in ("functions", "scripts") if form in found]
    return found["what"] + ": " + ", ".join(f"{f} {found[f]:.2f} ({found[f'{f} most']:.2f}) ms" for f in forms)


def slowest(found: dict[str, Any]) -> float:
    return max(found[form] for form in ("functions", "scripts") if form in found)


def targets(found: list[dict[str, Any]]) -> list[Target]:
    bounded = max((one for one in found if not one["is_sized"]), key=slowest, default=None)
    what = f"the longest bounded call ({bounded['what']})" if bounded else ""
    return [at_most(what, slowest(bounded), LIMIT_MS, " ms")] if bounded else []


def markdown(found: list[dict[str, Any]]) -> str:
    rows = [[one["what"] + (" *" if one["is_sized"] else ""), one.get("functions"), one["scripts"]] for one in found]
    text = f"Redis CPU ms of one call, the median of {CALLS}. * sized by its caller."
    return table(["", "functions", "scripts"], rows) + "\n\n" + text
