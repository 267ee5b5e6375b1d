"""Operations that only read, and of which nothing but the table says what they take."""

from driving.random_more import FEATURES, STATES
from driving.wire import TABLE


class PlainGenerator:
    """Needs what random_jobs.Generator has."""

    def plain_weights(self, *named):
        """Of each beside those that are named elsewhere."""
        named = {*named, *(script for weights in FEATURES.values() for script in weights)}
        made = {script for script, one in TABLE.items() if one.made and one.method == "GET"} - named
        return {script: [0.5, 0.5, 0.5] for script in sorted(made & set(self.driver.scripts))}

    def plain(self, script):
        known = {
            "id": self.job(*STATES)[0], "queue": self.rng.choice(self.queues_used), "worker": self.worker(),
            "name": self.rng.choice(self.names), "count": self.rng.choice((1, 2, 100)),
        }  # fmt: skip
        return {
            one.to: known[one.to]
            for one in TABLE[script].fields
            if one.to in known and (one.required or one.place == "path" or self.chance(0.5))
        }
