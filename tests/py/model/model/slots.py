"""Slots of registered workers for jobs of other partitions, and who has room: section 8 of docs/protocol.md."""

from model.common import accepted, expect, ms, same
from model.part import Part


class Slots(Part):
    operations = ("slots",)

    def slots(self, reply, jobs=(), limit=100, worker=None):
        if worker is not None:
            of = self.model.workers.registered[worker].slots if worker in self.model.workers.registered else {}
            same(
                dict(zip(reply[::2], reply[1::2], strict=True)), {id: token for id, (token, *_) in of.items()}, "slots"
            )
            return
        accepted(reply)
        same(reply[0], [int(self.keep_slot(*one)) for one in jobs], "slots kept")
        shown = {id: (told, doc) for id, *told, doc in reply[1:]}
        ready = {one.id: one for one in self.model.workers.with_room()}
        expect(len(shown) == len(reply) - 1 and shown.keys() <= ready.keys(), "workers with room", shown, ready)
        for id, (told, doc) in shown.items():
            one = ready[id]
            same(told, [one.url, one.secrets, one.key], "what is told of a worker with room")
            free = one.max_jobs - self.model.workers.used(one)
            wanted = {"queues": one.queues, "refused": sorted(one.refused), "free": free, "max_jobs": one.max_jobs}
            same({**doc, "refused": sorted(doc["refused"])}, wanted, "a worker with room")
        pools = {(tuple(one.queues), frozenset(one.refused), one.key): 0 for one in ready.values()}
        for one in (ready[id] for id in shown):
            pools[tuple(one.queues), frozenset(one.refused), one.key] += 1
        expect(not limit or all(pools.values()), "a pool with room is not told", pools)
        expect(len(ready) > limit // max(1, len(pools)) or not limit or shown.keys() == ready.keys(), "too few told")

    def keep_slot(self, worker, job, token, ms_left):
        one = self.model.workers.registered.get(worker)
        before = one.slots.get(job) if one else None
        if not ms_left:
            if before and before[0] == token:
                del one.slots[job]
                return True
            return False
        number = int(token.split("-")[0])
        is_late = before and int(before[0].split("-")[0]) > number
        if is_late or (not before and one not in self.model.workers.with_room()):
            return False
        grace_ms = ms(self.model.settings["lease_grace"])
        since_ms = before[1] if before else self.model.now
        one.slots[job] = (token, since_ms, self.model.now + ms_left + grace_ms)
        return True
