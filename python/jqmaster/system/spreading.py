"""Which partition each bucket is to have, such that all have as many, and few move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def spread(buckets: Sequence[int], takers: Sequence[int], fixed: Iterable[int] = ()) -> dict[int, int]:
    """The buckets that are to move, each with its partition from then on.

    ``buckets``: the partition of each. ``takers``: those that are to have some, all others none. ``fixed``: buckets
    that stay where they are.
    """
    stay = set(fixed)
    load = Counter(dict.fromkeys(takers, 0))
    load.update(number for number in buckets if number in load)
    most = -(-len(buckets) // len(takers))
    least = len(buckets) // len(takers)
    moves: dict[int, int] = {}
    # Those that must go come first, so that what is left evens out the rest.
    for bucket, at in sorted(enumerate(buckets), key=lambda one: (one[1] in load, one[0])):
        to = min(load, key=lambda number: (load[number], number))
        is_due = at not in load or load[at] > most or (load[at] > least and load[to] < least)
        if bucket in stay or not is_due:
            continue
        if at in load:
            load[at] -= 1
        load[to] += 1
        moves[bucket] = to
    return moves
