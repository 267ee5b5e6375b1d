"""Marks: docs/finding.md."""

from model.common import accepted, same
from model.part import Part

KEPT_MS = 400 * 86_400_000
MOST = 1000
SAME_MS = 60_000


class Marks(Part):
    def __init__(self, model):
        super().__init__(model)
        self.marks = []  # (moment, text, who), in order
        self.is_new = False  # the last that was set

    def mark(self, reply, text, time_ms=None, actor=""):
        accepted(reply)
        at_ms = self.now if time_ms is None else time_ms
        least_ms = self.now - SAME_MS if time_ms is None else time_ms
        known = [one for one in self.marks if least_ms <= one[0] <= at_ms and one[1] == text]
        self.is_new = not known
        shown = known[-1] if known else (at_ms, text, actor)
        same(reply, {"time_ms": shown[0], "text": shown[1], "actor": shown[2]}, "mark")
        if self.is_new:
            kept = [one for one in (*self.marks, shown) if one[0] >= self.now - KEPT_MS]
            self.marks = sorted(kept, key=lambda one: (one[0], one[1].encode()))[-MOST:]

    def list_marks(self, reply, from_ms=0, to_ms=float("inf"), count=None):
        accepted(reply)
        least_ms = max(from_ms, self.now - KEPT_MS)
        expected = [
            {"time_ms": at_ms, "text": text, "actor": actor}
            for at_ms, text, actor in reversed(self.marks)
            if least_ms <= at_ms < to_ms
        ]
        same(reply, expected, "marks")
