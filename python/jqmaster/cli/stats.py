"""`stats`: what happened, by minute, hour or day."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from jqmaster.cli import show
from jqmaster.cli.kinds import Span, option
from jqmaster.cli.reach import connect
from jqmaster.cli.status import Replies

_LENGTHS_S = {"minute": 60, "hour": 3600, "day": 86400}
_DEFAULTS = {"minute": 30, "hour": 24, "day": 30}
_FORMS = {"minute": "%H:%M", "hour": "%m-%d %H:%M", "day": "%Y-%m-%d"}
_COUNTS = ("enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved", "skipped")
_COLUMNS = "IN>=enqueued|DONE>=done|FAILED>=failed|LAPSED>=lapsed|ERROR>=error:red|CANCEL>=cancelled|BACK>=released|"
_COLUMNS += "MOVED>=moved|SKIP>=skipped|WAIT>=wait_mean|WAIT99>=wait_p99|RUN>=run_mean|RUN99>=run_p99"


def stats(
    *,
    by: Annotated[Literal["minute", "hour", "day"], option("a row for each")] = "hour",
    queue: Annotated[str | None, option("of this queue")] = None,
    name: Annotated[str | None, option("of jobs of this name")] = None,
    last: Annotated[Span | None, option("how far back; default: 30 minutes, 24 hours or 30 days")] = None,
    series: Annotated[bool, option("a row for each queue and name, over the whole time")] = False,
) -> Replies:
    """Show what happened, by minute, hour or day.

    FAILED counts attempts that failed and are retried, ERROR jobs that failed for good. WAIT is from when a job is
    ready to its start, RUN a successful attempt: means, and what 99 of 100 do not exceed (by hour and day only).
    """
    client, length_ms = connect(), _LENGTHS_S[by] * 1000
    back_ms = last * 1000 if last else (_DEFAULTS[by] - 1) * length_ms
    period: dict[str, Any] = {
        "queue": queue,
        "name": name,
        "from_ms": int((show.now_ms() - back_ms) // length_ms * length_ms),
    }
    if series:
        # A queue's own row, without a name, is the sum of the rows of its names.
        found = [one for one in client.each("stats", by, series=True, **period) if one.get("name")]
        found.sort(key=lambda one: -one["enqueued"] - one["done"])
        head = "QUEUE~=queue|NAME~=name"
    else:
        found, head = client.call("stats", by, **period), f"{by.upper()}=begin"
    total = {name: sum(one[name] for one in found) for name in _COUNTS}
    in_all = ", ".join(f"{show.count(total[name])} {name}" for name in _COUNTS if total[name])
    rows = [_row(one, by) for one in found]
    yield found, show.Table(f"{head}|{_COLUMNS}", rows, empty="nothing happened", more=f"in all: {in_all}")


def _row(one: dict[str, Any], by: str) -> dict[str, Any]:
    # Days are those of UTC: with a local time of day they would seem to begin in the evening before.
    zone = time.gmtime if by == "day" else time.localtime
    row = dict(one)
    if "begin_ms" in one:
        row["begin"] = time.strftime(_FORMS[by], zone(one["begin_ms"] / 1000))
    for kind in ("wait", "run"):
        if (times := one.get(kind) or {}).get("count"):
            row |= {f"{kind}_{what}": show.milliseconds(times[what]) for what in ("mean", "p99")}
    return row
