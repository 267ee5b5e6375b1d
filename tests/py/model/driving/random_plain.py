"""Operations of which nothing but the head of the script says what they take."""

from driving.random_more import FEATURES, STATES
from jqmaster.manifest.manifest import operations

KNOWN = ("id", "ids", "queue", "worker", "name", "count")  # arguments that can be made up


class PlainGenerator:
    """Needs what random_jobs.Generator has."""

    def plain_weights(self, *named):
        """Of each beside those that are named elsewhere."""
        named = {*named, *(script for weights in FEATURES.values() for script in weights)}
        made = {
            script
            for script, one in operations().items()
            if one.positions in (("spec",), ("id",))
            and any(not route.answer for route in one.routes)
            and all(argument.name in KNOWN for argument in one.arguments if not argument.optional)
        } - named
        return {script: [0.5, 0.5, 0.5] for script in sorted(made & set(self.driver.scripts))}

    def plain(self, script):
        known = {
            "id": self.job(*STATES)[0], "queue": self.rng.choice(self.queues_used), "worker": self.worker(),
            "name": self.rng.choice(self.names), "count": self.rng.choice((1, 2, 100)),
            "ids": self.distinct(3, *STATES),
        }  # fmt: skip
        return {
            one.name: known[one.name]
            for one in operations()[script].arguments
            if one.name in known and (not one.optional or self.chance(0.5))
        }
