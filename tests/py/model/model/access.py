"""Keys of the HTTP API: docs/operating.md."""

from model.common import Refused, ms, same, there
from model.part import Part


class Access(Part):
    def __init__(self, model):
        super().__init__(model)
        self.api_keys = {}  # id -> (digest, document)

    def grant(self, reply, id, digest, name, roles, queues=None, ttl=None, rate=None):
        known = self.api_keys.get(id)
        if known and known[0] != digest:
            raise Refused("CONFLICT", "id")
        if not known:
            now = self.now
            document = {"id": id, "name": name, "roles": roles, "queues": queues, "rate": rate, "created_ms": now,
                        "expires_ms": None if ttl is None else now + ms(ttl)}  # fmt: skip
            known = self.api_keys[id] = digest, {k: v for k, v in document.items() if v is not None}
        same(reply, known[1], "grant")

    def lasts(self, id):
        """Whether a key is there, and has not expired."""
        return id in self.api_keys and self.now < self.api_keys[id][1].get("expires_ms", float("inf"))

    def revoke(self, reply, id):
        there(id, self.api_keys)
        del self.api_keys[id]

    def touch(self, reply, ids):
        there = [id for id in ids if id in self.api_keys]
        same(reply, len(there), "touch")
        for id in there:
            self.api_keys[id][1]["used_ms"] = self.now

    def list_keys(self, reply, digests=False, count=None):
        keys = [doc | ({"digest": digest} if digests else {}) for _, (digest, doc) in sorted(self.api_keys.items())]
        same(reply, keys, "keys")
