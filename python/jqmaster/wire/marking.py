"""The part of the table of operations that is about marks, and what changed since one."""

from __future__ import annotations

from jqmaster.wire import parts as p
from jqmaster.wire.operation import Operation, Type

# fmt: off
MARKING = (
    Operation(
        "mark", "", "POST", "/mark", "operator", "Put a name to a moment, such as a deploy", p.DOCUMENT,
        (
            p.body("text", Type("text", 1, 200), required=True),
            p.body("time_ms", p.MOMENT, "When that was; default: now."),
        ),
    ),
    Operation(
        "marks", "", "GET", "/marks", "viewer", "Marks, newest first", p.page("marks"),
        (
            p.query("from_ms", p.MOMENT, "Of then or later."), p.query("to_ms", p.MOMENT, "Of before."), *p.PAGE,
        ),
    ),
)
# fmt: on
