"""Who waits for work: nobody sleeps while he could work.

A sleeper is known by when he gets up by himself. Whenever a job is ready for somebody asleep, the channel's
marker must be set; and when the next due moment comes nearer, or he who would have been up by then has got
other work, somebody must be woken to be up in time.
"""

from dataclasses import dataclass

from model.common import ALL, expect
from model.part import Part

SLACK_MS = 1000  # so late may a sleeper be; after that he is dead


@dataclass
class Channel:
    queues: object  # None for the channel of masters
    without: frozenset  # names of jobs that those on it do not take
    up_ms: dict  # who -> when he gets up by himself
    covered_ms: float = float("inf")  # the next due moment when we last looked
    somebody_left: bool = False


class Sleepers(Part):
    def __init__(self, model):
        super().__init__(model)
        self.channels = {}
        # Channels where a marker was left lying, as they were: the engine forgets them when it next marks one, and
        # counts on who is late until then.
        self.left = {}
        self.opened_by_time = set()  # ids of jobs whose keys the clock opened since the last sweep
        self.opened_keys = set()  # those keys

    def gets_up(self, who, wait):
        channel = self.channels.get(wait["on"]) if wait else None
        if channel and channel.up_ms.pop(who, None) is not None:
            channel.somebody_left = True

    def goes_to_sleep(self, who, wait, queues, next_ms, without=()):
        late = self.left.pop(wait["on"], None)
        up_ms = {other: up for other, up in late.up_ms.items() if self.is_late(up)} if late else {}
        channel = self.channels.setdefault(wait["on"], Channel(queues, frozenset(without), up_ms))
        channel.up_ms[who] = self.now + (wait["ms"] if next_ms == -1 else min(wait["ms"], next_ms))

    def is_ready_for(self, channel):
        if channel.queues is None:
            ready = [job for worker in self.workers.registered.values() for job in self.workers.wants(worker)]
        else:
            ready = self.order.in_sight(self.order.ready(channel.queues), channel.without)
        # A job that comes later and needs such a key is for who is about to be up, too.
        opened = self.opened_keys if any(map(self.is_late, channel.up_ms.values())) else set()
        return any(job.id not in self.opened_by_time and not opened & self.key_names(job) for job in ready)

    def is_late(self, up_ms):
        return self.now - SLACK_MS < up_ms <= self.now

    def key_names(self, job):
        return {(constraint.id, key) for constraint, key in self.limits.keys_of(job)}

    def move_clock(self, delta_ms):
        """What the clock opens wakes nobody by itself: who sleeps is up in time."""
        before = {job.id for job in self.order.ready(ALL)} if self.limits.constraints else set()
        self.model.now += delta_ms
        if self.limits.constraints:
            opened = [job for job in self.order.ready(ALL) if job.id not in before]
            self.opened_by_time |= {job.id for job in opened}
            self.opened_keys |= set().union(*map(self.key_names, opened))

    def swept(self, left_some):
        if not left_some:
            self.opened_by_time.clear()
            self.opened_keys.clear()

    def next_due_for(self, channel):
        queues = channel.queues
        if queues is None:
            queues = [entry for worker in self.workers.with_room() for entry in worker.queues]
            openings = self.workers.openings_for_workers()
        else:
            openings = self.limits.openings(queues, lambda job: job.name not in channel.without)
        jobs = [j for j in self.jobs.values() if j.due_ms is not None and self.life.is_open(j, queues)]
        moments = [self.clock.due_of(job) for job in jobs]
        moments += openings + self.schedules.moments_for(queues)
        return min(moments, default=float("inf"))

    def look_for_late(self, marked_ms):
        """Who blocks takes a marker at once: where one is left lying, all who should sleep there are late, or dead."""
        for name in list(self.channels):
            since_ms = marked_ms(name)
            if since_ms is not None and self.now - since_ms > SLACK_MS:
                self.left[name] = self.channels.pop(name)

    def check_sleepers(self, marked_ms):
        """After every operation but moves of the clock. marked_ms: channel -> when its marker was set, or None."""
        for name, channel in self.channels.items():
            asleep = [up for who, up in channel.up_ms.items() if up > self.now and not self.workers.is_quiet(who)]
            if asleep and self.is_ready_for(channel):
                is_woken = marked_ms(name) is not None
                expect(is_woken, "a job is ready and nobody is woken for it", name, channel, self.now)
            up_ms = min((up for up in channel.up_ms.values() if up > self.now - SLACK_MS), default=None)
            due_ms = self.next_due_for(channel)
            is_new = due_ms < channel.covered_ms or channel.somebody_left
            if asleep and up_ms > due_ms and is_new:
                expect(marked_ms(name) is not None, "nobody is up when the next is due", name, channel, due_ms)
            channel.covered_ms, channel.somebody_left = due_ms, False
