"""Names of a cluster's partitions, and which of them has what (docs/cluster.md, "For other clients")."""

from __future__ import annotations

import binascii
import hashlib
import itertools
import re
from functools import cache

MOST_PARTITIONS = 256
_SLOTS = 16384
_NAME = re.compile(r"\{(.+):\*/([1-9]\d*)\}")


def is_cluster(namespace: str) -> bool:
    """Whether a name means a cluster: `{shop:*/16}`."""
    return _NAME.fullmatch(namespace) is not None


@cache
def partitions(namespace: str) -> tuple[str, ...]:
    """The namespaces of a cluster, in order. Raises ValueError for a name of too many."""
    match = _NAME.fullmatch(namespace)
    if match is None or int(match[2]) > MOST_PARTITIONS:
        raise ValueError(f"{namespace}: expected a cluster of 1 to {MOST_PARTITIONS} partitions, such as {{shop:*/16}}")
    return tuple(_partition(match[1], number, int(match[2])) for number in range(int(match[2])))


def _partition(root: str, number: int, count: int) -> str:
    """Of as many equal ranges of slots as there are partitions its slot is in the one of its number: so nodes that have
    equal ranges have as many of them."""
    first, behind = number * _SLOTS // count, (number + 1) * _SLOTS // count
    for salt in itertools.count():
        tag = f"{root}:{number}~{salt:x}/{count}"
        if first <= binascii.crc_hqx(tag.encode(), 0) % _SLOTS < behind:
            return f"{{{tag}}}"
    raise AssertionError("some salt fits")


def home_of(value: bytes | str, count: int) -> int:
    """The number of the partition that a value leads to."""
    digest = hashlib.sha1(value.encode(errors="surrogatepass") if isinstance(value, str) else value).digest()
    return int.from_bytes(digest[:4], "big") % count


def is_registered(worker: object) -> bool:
    """Whether a worker's name is the id of a registered one."""
    return isinstance(worker, str) and re.fullmatch("w[0-9a-f]{14}([0-9a-f]{2})?", worker) is not None


def number_of(what: str | bytes, count: int) -> int:
    """The number of the partition that gave an id, of a job or of a worker; else of the one that a name leads to."""
    text = what.decode(errors="replace") if isinstance(what, bytes) else what
    found = re.fullmatch("[wt]?[0-9a-f]{14}([0-9a-f]{2})?", text)
    number = int(found[1] or "0", 16) if found else home_of(what, count)
    return number if number < count else 0
