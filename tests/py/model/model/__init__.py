"""The reference model: what docs/protocol.md says, in lists and loops.

To read it, begin with `life` (a job and its states), then `arrival` (how jobs come), `work` (what workers ask) and
`outcomes` (what follows). Each part is a room of the engine's contract and owns what it knows; the model puts them
together, and has what all of them share: the jobs, the settings, the clock. `common` has the words in which engine
and model are compared.

An operation is a method of its name, of a listing `list_<name>`, in whichever part it belongs to. It gets the engine's
reply and the call's arguments, says whether a user who had read the protocol would accept it (`Mismatch` where not,
`Refused` where the call is to be refused: else the driver sees to it that it was not), and then does the same to its
own jobs. Where the protocol leaves a choice
to the engine (ids, jitter, when an old record goes) the model looks at the `engine`, checks
that the choice is one of those allowed, and follows. A decision about what the page leaves open is written into the
page, and then followed here.
"""

from jqmaster.manifest.manifest import operations
from model.access import Access
from model.arrival import Arrival
from model.clock import Clock
from model.common import DEFAULTS, ErrorReply, Mismatch, Refused, expect
from model.finding import Finding
from model.life import Life
from model.limit_documents import LimitDocuments
from model.limits import Limits
from model.links import Links
from model.needs import Needs
from model.order import Order
from model.outcomes import Outcomes
from model.queues import Queues
from model.schedules import Schedules
from model.sleepers import Sleepers
from model.statistics import Statistics
from model.trace import Trace
from model.webhooks import Webhooks
from model.work import Work
from model.workers import Workers

__all__ = ["ErrorReply", "Mismatch", "Model", "Refused", "expect"]


PARTS = {
    "life": Life, "clock": Clock, "arrival": Arrival, "links": Links, "needs": Needs, "outcomes": Outcomes,
    "work": Work, "finding": Finding, "limits": Limits, "limit_documents": LimitDocuments,
    "order": Order, "workers": Workers, "sleepers": Sleepers, "schedules": Schedules, "trace": Trace,
    "statistics": Statistics, "access": Access, "queues": Queues, "webhooks": Webhooks,
}  # fmt: skip


class Model:
    """`engine`: what may be looked at where the engine has a choice (`driving.driver`): `look(id)`, a job's document
    or None, and so `look_at_worker`, `look_at_schedule`; `ids_after(id)`; `look_at_events()`, what was published
    since the last check; `is_asleep(who, channel)`."""

    def __init__(self, engine):
        self.engine = engine
        self.now = 0
        self.jobs = {}
        self.settings = dict(DEFAULTS)
        self.operations = {}
        self.parts = {name: part(self) for name, part in PARTS.items()}
        vars(self).update(self.parts)
        for part in self.parts.values():
            part.meet(self.parts, engine)
            names = [name for name in dir(type(part)) if name.removeprefix("list_") in operations()]
            self.operations |= {name: getattr(part, name) for name in names}

    def is_listing(self, script):
        """Whether it answers in pages, of which the model is given all documents."""
        return f"list_{script}" in self.operations

    def transition(self, job, was, event=None):
        """Every change of a state comes by here. `event` is what the job's history calls it, if it does."""
        for part in (self.trace, self.statistics, self.limits, self.workers, self.arrival, self.links,
                     self.queues, self.webhooks):  # fmt: skip
            part.transition(job, was, event)

    def after_operation(self):
        """Records of which none are kept go with the operation, others are free to go."""
        self.jobs = {id: job for id, job in self.jobs.items() if not job.goes_at_once}
        for job in self.life.beyond_limits():
            job.may_be_gone = True
        self.webhooks.after_operation()

    # ---- not operations: what must hold besides ----

    def advance(self, delta_ms):
        self.sleepers.move_clock(delta_ms)

    def settled(self, old):
        """Time enough has passed for the records `old`, and everything due is done."""
        beyond = self.life.beyond_limits()
        for job in list(self.jobs.values()):
            expect(not self.clock.is_due(job), "was due and not done", job, self.now)
            doc = self.engine.look(job.id)
            if doc is None and job.may_be_gone:
                del self.jobs[job.id]
            elif job not in beyond:
                job.may_be_gone = False
            else:
                expect(doc is None or job.id not in old, "a record is kept beyond its limit", doc, self.now)
        expect(not self.clock.dead_workers(), "a dead worker is still there", self.clock.dead_workers())
