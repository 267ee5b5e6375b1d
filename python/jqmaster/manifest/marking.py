"""The part of the table of operations that is about what happened over time: statistics, marks, what changed."""

from __future__ import annotations

from jqmaster.manifest import parts as p
from jqmaster.manifest.operation import Operation, Reply, Type

# fmt: off
MARKING = (
    Operation(
        "stats", "", "GET", "/stats", "viewer", "What happened, by minute, hour or day", Reply("list", ("stats",)),
        p.PERIOD,
    ),
    Operation(
        "stats", "series", "GET", "/stats/series", "viewer", "What happened to each pair of queue and name",
        p.page("series"), (*p.PERIOD, *p.PAGE), {"series": True},
    ),
    Operation(
        "mark", "", "POST", "/mark", "operator", "Put a name to a moment, such as a deploy", p.DOCUMENT,
        (
            p.body("text", Type("text", 1, 200), required=True),
            p.body("time_ms", p.MOMENT, "When that was; default: now."),
        ),
        made="`{time_ms, text, actor}`; the same text within a minute is the same mark, whose document comes back",
    ),
    Operation(
        "marks", "", "GET", "/marks", "viewer", "Marks, newest first", p.page("marks"),
        (
            p.query("from_ms", p.MOMENT, "Of then or later."), p.query("to_ms", p.MOMENT, "Of before."), *p.PAGE,
        ),
        made="`time_ms`, `text` and `actor` of each, from `from_ms` on, before `to_ms`",
    ),
    Operation(
        "", "trends", "GET", "/trends", "viewer", "What came to an end over time, by outcome, queue or name",
        Reply("own"),
        (
            p.query("split", Type("text", choices=("outcome", "queue", "name")), default="outcome"),
            p.query("from_ms", p.MOMENT, "From the bucket of then on.", required=True),
            p.query("to_ms", p.MOMENT, "Buckets that begin before; default: now."),
            p.query("top", Type("integer", 1, 20), "So many series, the largest.", default=8),
        ),
        by_hand="made of several reads, once for all who ask",
    ),
    Operation(
        "", "changes", "GET", "/changes", "viewer", "What is different since a moment", Reply("own"),
        (
            p.query("since_ms", p.MOMENT, "Such as a mark's.", required=True),
            p.query("span", Type("integer", 60, 691200), "So many seconds before and after.", default=3600),
            p.query("top", Type("integer", 1, 1000), "So many rows, the most changed.", default=100),
        ),
        by_hand="made of several reads, once for all who ask",
    ),
)
# fmt: on
