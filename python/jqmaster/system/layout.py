"""How a system is laid out: names of partitions, such that a cluster's nodes have equally many of them, and buckets,
such that the partitions have."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence

from redis.crc import key_slot

from jqmaster.errors import Invalid
from jqmaster.system.record import MOST_PARTITIONS, check_count

SLOTS = 16384
_SALT_BYTES = 3
_LONGEST = 64 - len(f":{MOST_PARTITIONS - 1}~") - 2 * _SALT_BYTES
_PARTITION = re.compile(r":\d+~[0-9a-fA-F]+$")  # by this the namespace gives ids with its number
_TRIES = 200  # for each node; one with so few slots that none is met gets no partition


def lay_out(root: str, count: int, owners: Sequence[str], there: Sequence[str] = ()) -> list[str]:
    """Namespaces of ``count`` partitions in slots of their own, ``root`` the first of them.

    ``owners``: the node of each slot, "" where nobody has it. ``there``: the first of them, where there are some
    already. Raises Invalid when there are too many, or the name leaves no room for what is added to it.
    """
    check_count(count)
    tag = root[1:-1]
    if _PARTITION.search(tag):
        raise Invalid(f"{root} is named as a partition of another system is", "namespace")
    if len(tag) > _LONGEST:
        raise Invalid(f"expected at most {_LONGEST} characters in braces, got {len(tag)}", "namespace")
    names = [*there] or [root]
    taken = {int(key_slot(name.encode())) for name in names}
    load = Counter(dict.fromkeys(filter(None, owners), 0))
    load.update(filter(None, (owners[slot] for slot in taken)))
    while len(names) < count:
        name, slot = _name(f"{{{tag}:{len(names)}~", owners, load, taken)
        names.append(name)
        taken.add(slot)
        load[owners[slot]] += 1
    return names


def _name(head: str, owners: Sequence[str], load: Counter[str], taken: set[int]) -> tuple[str, int]:
    """A name at the node that has the fewest so far. Chance keeps the names of two systems apart, and spreads
    slots within a node, so that those that move later take their share of partitions along."""
    best: tuple[int, str, int] | None = None
    for _ in range(_TRIES * len(load)):
        name = head + secrets.token_hex(_SALT_BYTES) + "}"
        slot = int(key_slot(name.encode()))
        if slot in taken or not owners[slot]:
            continue
        if best is None or load[owners[slot]] < best[0]:
            best = load[owners[slot]], name, slot
        if best[0] == min(load.values()):
            break
    if best is None:
        raise Invalid("the cluster has no free slot that a node serves", "partitions")
    return best[1:]


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
