"""Alerts: docs/finding.md. The model checks that those about queues are there exactly where they must
be, and that the others are about what there is; what is usual it leaves to the specs."""

from model.common import WAITING, accepted, expect, same
from model.part import Part

WAITS = ("late", "stopped", "unserved", "unknown_job")


class Alerts(Part):
    def list_alerts(self, reply, queue=None):
        """Without queue: all the pages, one after the other."""
        accepted(reply)
        by_kind = {}
        for alert in reply:
            by_kind.setdefault(alert["kind"], []).append(alert)
        known = {"queue": self.queues.records, "job": self.jobs,
                 "constraint": self.limits.constraints}  # fmt: skip
        for field, things in known.items():
            about = {alert[field] for alert in reply if field in alert}
            expect(about <= set(things), "alerts of what is not there", field, about, list(things))
        queues = [name for name in self.queues.records if queue in (None, name)]
        for kind in ("paused", "full"):
            wanted = [name for name in queues if getattr(self, f"is_{kind}")(name)]
            same(sorted(alert["queue"] for alert in by_kind.get(kind, [])), sorted(wanted), f"alerts of kind {kind}")
        waits = [alert["queue"] for kind in WAITS for alert in by_kind.get(kind, [])]
        same(sorted(waits), sorted(set(waits)), "one alert of a queue that waits")
        late = {name for name in queues if self.is_late(name)}
        expect(set(waits) <= late, "alerts of queues whose jobs are not late", waits, late)
        # How long jobs usually wait may excuse those that are only slow.
        lacking = {name for name in late - set(waits) if self.is_unserved(name)}
        expect(not lacking, "no alert of a queue that nobody serves", lacking)

    def of_state(self, queue, *states):
        return [job for job in self.jobs.values() if job.queue == queue and job.status in states]

    def is_paused(self, queue):
        return self.queues.records[queue]["paused"] and bool(self.of_state(queue, "queued"))

    def is_full(self, queue):
        most = self.queues.records[queue]["max_waiting"]
        return 0 < most <= len(self.of_state(queue, *WAITING))

    def is_late(self, queue):
        queues = self.queues
        oldest_ms = queues.oldest_ready_ms(self.of_state(queue, "queued"))
        late_ms = queues.setting(queue, "late_after") * 1000
        return oldest_ms is not None and not queues.records[queue]["paused"] and self.now - oldest_ms >= late_ms

    def is_unserved(self, queue):
        """As far as that is sure: nobody waits for its jobs, and nothing ever ran there."""
        jobs = self.of_state(queue, "queued", "running")
        return (
            queue != "jq.webhooks"
            and not self.workers.serving(queue)
            and not self.sleepers.channels
            and all(job.status == "queued" and not job.attempt for job in jobs)
            and not self.limits.constraints
            and len(jobs) <= 50
        )
