"""Statistics: a list of all that happened, counted at every question."""

import math
from collections import Counter

from model.common import expect, same
from model.part import Part

HOUR_MS = 3_600_000
SIZES_MS = {"minute": 60_000, "hour": HOUR_MS, "day": 24 * HOUR_MS}
KEPT_MS = {"minute": 3 * HOUR_MS, "hour": 8 * 24 * HOUR_MS, "day": 400 * 24 * HOUR_MS}
COUNTS = ("enqueued", "done", "failed", "lapsed", "error", "cancelled", "released", "moved", "skipped")
TIMES = ("wait", "run")
MOST = 1000  # documents of a reply
STEP = 1.2


class Statistics(Part):
    def __init__(self, model):
        super().__init__(model)
        self.happened = []  # (moment, (queue, name), what, ms)

    def transition(self, job, was, event=None):
        if (event in ("failed", "lapsed") and job.status == "error") or event in ("expired", "dependency"):
            event = "error"
        event = "released" if event == "blocked" else event
        if event in COUNTS and event != "moved":
            self.count(job, event)
        if was == "running" and event != "moved":
            self.count_times(job, event)

    def count_times(self, job, event):
        """When an attempt ends; before a job that is moved on has its new name."""
        if job.attempt == 1:
            ready_ms = job.created_ms if job.ready_ms is None else job.ready_ms
            self.count(job, "wait", max(0, job.started_ms - ready_ms))
        ran_ms = max(0, self.now - job.started_ms)
        if event == "done":
            self.count(job, "run", ran_ms)

    def count(self, job, what, value=None):
        if self.settings["stats"]:
            self.happened.append((self.now, (job.queue, job.name), what, value))

    def is_behind(self, job, what):
        """Whether the engine has counted more of this in the minute that goes on."""
        begin = self.now // SIZES_MS["minute"] * SIZES_MS["minute"]
        told = self.engine.look_at_counts(job.queue, job.name, begin).get(what, 0)
        known = Counter((pair, event) for moment, pair, event, _ in self.happened if moment >= begin)
        return told > known[(job.queue, job.name), what]

    def forget_counts(self, queue):
        self.happened = [told for told in self.happened if told[1][0] != queue]

    def stats(self, reply, by, queue=None, name=None, from_ms=None, to_ms=None, series=False, brief=False):
        size = SIZES_MS[by]
        found = {}  # begin of a bucket, or with series a pair -> what happened
        is_old = set()
        for moment, pair, what, took_ms in self.happened:
            begin = moment // size * size
            asked = (from_ms is None or from_ms <= begin) and (to_ms is None or begin < to_ms)
            if not asked or queue not in (None, pair[0]) or name not in (None, pair[1]):
                continue
            key = pair if series else begin
            found.setdefault(key, []).append((what, took_ms))
            if begin <= self.now - KEPT_MS[by]:
                is_old.add(key)
        shown = [(doc["queue"], doc["name"]) if series else doc["begin_ms"] for doc in reply]
        expect(len(set(shown)) == len(shown), "statistics: one twice", shown)
        expect(series or shown == sorted(shown), "statistics: not in order", shown)
        needed = {key for key in found if key not in is_old}
        if len(shown) < MOST:
            expect(needed <= set(shown), "statistics: missing", needed - set(shown))
        for key, doc in zip(shown, reply, strict=True):
            if key in is_old and series:
                continue
            doc, happened = dict(doc), found.get(key, [])
            self.check_counts(doc, happened, series, brief)

    def check_counts(self, doc, happened, series, brief):
        for field in ("queue", "name") if series else ():
            doc.pop(field)
        begin_ms = doc.pop("begin_ms", None)
        counted = Counter(what for what, _ in happened)
        for what in COUNTS:
            same(doc.pop(what), counted[what], f"statistics: {what} at {begin_ms}")
        for what in TIMES:
            values = sorted(took_ms for other, took_ms in happened if other == what)
            shown = doc.pop(what, {"count": 0})
            same(shown["count"], len(values), f"statistics: count of {what}")
            if values:
                self.check_times(shown, values, what, brief)
        same(doc, {}, "statistics: unknown fields")

    def check_times(self, shown, values, what, brief):
        count, mean = len(values), sum(values) / len(values)
        close = max(0.51, 1e-6 * values[-1])
        expect(abs(shown["mean"] - mean) <= close, f"{what}: mean", shown, mean)
        same((shown["min"], shown["max"]), (values[0], values[-1]), f"{what}: min and max")
        if not brief:
            self.check_histogram(shown["histogram"], values, what)
        for percent in (50, 90, 95, 99):
            at = percent / 100 * count
            low, high = values[max(0, math.ceil(at) - 1)], values[min(count - 1, math.floor(at))]
            got = shown[f"p{percent}"]
            fits = low / STEP / 1.01 - 1 <= got <= high * STEP * 1.01 + 1
            expect(fits, f"{what}: p{percent}", got, low, high, shown)
        fields = {"count", "mean", "min", "max", "p50", "p90", "p95", "p99"}
        same(set(shown), fields if brief else {*fields, "histogram"}, what)

    def check_histogram(self, shown, values, what):
        total = 0
        for up_to, number in shown:
            total += number
            expected = sum(v <= up_to for v in values)
            same(total, expected, f"{what}: values up to {up_to} of {values}")
        same(total, len(values), f"{what}: histogram")
