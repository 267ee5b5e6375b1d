"""The record of the system that the namespace is a partition of."""

import hashlib

from model.common import Refused, accepted, same
from model.part import Part


class Systems(Part):
    operations = ("system",)

    def __init__(self, model):
        super().__init__(model)
        self.generation, self.record = 0, None
        self.version = "0"  # of what all partitions have

    def system(self, reply, before=None, record=None):
        if record is not None:
            if before is not None and (before, record["generation"]) != (self.generation, self.generation + 1):
                raise Refused("CONFLICT", "from")
            if record["generation"] > self.generation:
                self.generation, self.record = record["generation"], record
        accepted(reply)
        same(reply, [self.generation, self.record], "system: generation and record")

    def check_version(self, moves):
        """That a change is for what is there."""
        if moves and moves[0] != self.version:
            raise Refused("STALE", None)

    def is_stale(self, version, reply):
        """Whether who asks for jobs knows another version, and so gets none."""
        if version in (None, self.version):
            return False
        same(reply, [f"STALE {self.version}".encode()], "the version of settings")
        return True

    def home(self, spec):
        """The digits of the partition that has a job's unique key, "" for this one and where it has none."""
        if self.record is None or "unique" not in spec:
            return ""
        digest = hashlib.sha1(spec["unique"].encode()).hexdigest()
        digits = f"{self.record['buckets'][int(digest[:4], 16) % 1024]:02x}"
        return "" if digits == (self.model.suffix or "00") else digits

    def check(self, options, is_exact=False):
        """That a call was not routed by an earlier record, nor by a later one if it is to be this."""
        generation = (options or {}).get("generation", self.generation)
        if generation < self.generation or (is_exact and generation > self.generation):
            raise Refused("ROUTE", "generation")
