"""Jobs that are only for when another failed: what the end of one means, and who is skipped."""

from model.common import expect
from model.part import Part

OVER = ("done", "skipped")  # what such a job means for others does not depend on their if_failed
SAYS = {"wait": "wait", "fail": "fail", "run": "go", "only": "need"}  # by if_failed, of one that failed


class Needs(Part):
    def comes_to(self, job, was, doc):
        """Of a job that runs only if another failed, and comes to wait: `go` if it ends at once, or stays as it was."""
        said = [self.links.says(job, id) for id in job.waits_for]
        if not any({"need", "wait"} & some for some in said):
            return "go"
        if {"need"} in said or {"wait"} in said:
            return "wait"
        return "wait" if doc and doc["status"] not in ("skipped", was) else "go"

    def skip_at_once(self, job, was, event):
        job.waits_for = set()
        if not was:
            self.model.transition(job, was, event)
        self.life.end(job, "skipped", None)

    def may_skip(self, job):
        """Whether it runs only if another failed, and for all that is known none did."""
        return job.if_failed == "only" and {"need"} not in [self.links.says(job, id) for id in job.waits_for]

    def skips(self, job, doc):
        """What becomes of it when it waits for none any more; whether it is skipped."""
        said = [self.links.says(job, id) for id in job.waits_for]
        states = self.trace.states_to_come(job.id, "blocked") or [doc.get("status")]
        may_run, may_skip = any("need" in some for some in said), {"need"} not in said
        is_skipped = may_skip if states == [None] or not may_run else states[0] == "skipped"
        expect(may_skip or not is_skipped, "a job that is needed is skipped", job, said)
        if is_skipped:
            job.waits_for = set()
            self.life.end(job, "skipped", None)
        else:
            job.if_failed = "run"
        return is_skipped

    def note_expired(self, job):
        """Of one that expires while it waits: the sweep may have seen before that it is needed."""
        if job.if_failed == "only" and any("need" in self.links.says(job, id) for id in job.waits_for):
            job.if_failed = (self.engine.look(job.id) or {}).get("if_failed", "run")

    def note(self, job, said):
        """Of a job that runs only if another failed: what it does not wait for any more was one, or not."""
        if job.if_failed == "only" and any("need" in some for some in said):
            shown = (self.engine.look(job.id) or {}).get("if_failed", "run")
            expect({"need"} not in said or shown == "run", "if_failed of a job that is needed", job, shown)
            job.if_failed = shown
