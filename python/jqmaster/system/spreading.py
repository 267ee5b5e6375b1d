"""Which partition each bucket is to have, such that all have as many, and few move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def spread(
    buckets: Sequence[int], takers: Sequence[int], together: Iterable[frozenset[int]] = (), fixed: Iterable[int] = ()
) -> dict[int, int]:
    """The buckets that are to move, each with its partition from then on.

    ``buckets``: the partition of each. ``takers``: those that are to have some, all others none. ``together``: buckets
    that stay with each other; ``fixed``: those that stay where they are, with all that stay with them.
    """
    stay = set(fixed)
    groups = list(_merged(together))
    grouped = {bucket for group in groups for bucket in group}
    groups += [frozenset((bucket,)) for bucket in range(len(buckets)) if bucket not in grouped]
    load = Counter(dict.fromkeys(takers, 0))
    load.update(number for number in buckets if number in load)
    most = -(-len(buckets) // len(takers))
    least = len(buckets) // len(takers)
    moves: dict[int, int] = {}
    # Those that must go come first, large groups before small ones, so that what is left evens out the rest.
    for group in sorted(groups, key=lambda one: (buckets[min(one)] in load, -len(one), min(one))):
        at = buckets[min(group)]
        to = min(load, key=lambda number: (load[number], number))
        is_due = at not in load or load[at] > most or (load[at] > least and load[to] < least)
        if group & stay or not is_due or (at in load and load[to] + len(group) > load[at]):
            continue
        if at in load:
            load[at] -= len(group)
        load[to] += len(group)
        moves.update(dict.fromkeys(group, to))
    return moves


def _merged(groups: Iterable[frozenset[int]]) -> Iterable[frozenset[int]]:
    """Groups that have a bucket in common are one."""
    found: list[frozenset[int]] = []
    for group in groups:
        with_it = [one for one in found if one & group]
        found = [one for one in found if not one & group] + [group.union(*with_it)]
    return found
