"""Who a request comes from, and what they may."""

from __future__ import annotations

from typing import NamedTuple

from jqmaster.wire.operation import Role


class Identity(NamedTuple):
    """`name` stands in the trail. `queues`: names and patterns to which it is bound; None: to none.
    `key_id` is "" where no key was shown."""

    name: str
    roles: frozenset[Role]
    queues: tuple[str, ...] | None = None
    key_id: str = ""

    def may_use(self, queue: str) -> bool:
        """Whether a queue, or all that fit a pattern, are among those it is bound to."""
        return self.queues is None or any(covers(pattern, queue) for pattern in self.queues)


ANYBODY = Identity("anonymous", frozenset(("admin",)))
"""Where no keys are asked for."""


def covers(pattern: str, text: str) -> bool:
    """Whether `text` fits: in `pattern` a `*` stands for any run of characters. Where `text` is a pattern itself,
    whether all that fits it fits `pattern` too: a `*` in it fits nothing but a `*`."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    if not text.startswith(first):
        return False
    at, last = len(first), rest.pop()
    for part in rest:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(text) - len(last) >= at and text.endswith(last)
