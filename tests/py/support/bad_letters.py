"""Wrong mail between partitions: what is no letter, and letters that another wrote."""

import msgpack

from bad_values import WAITING, Raw, encode

COURIER = encode({"courier": "c"})
JOB = {"job": "spec", "argument": "value", "age_ms": 0, "least": WAITING, "generation": 1}
LETTER = {"format": 1, "kind": "follow", "id": WAITING + "01", "from": "00", "to": "01", "system": "s", "at": 1}


def of_bytes(value):
    """A text of any bytes, as Redis packs it."""
    return Raw(msgpack.packb(value, use_bin_type=False))


def of_letters(invalid, refused):
    """Letters that `outbox` takes back. What `deliver` refuses it answers, for each letter."""
    yield invalid("deliver", "nothing", "letters", says="got 0")
    yield invalid("deliver", "101 letters", "letters", *[encode(LETTER)] * 101, says="got 101")
    yield invalid("outbox", "no arguments", "spec")
    yield invalid("outbox", "a letter without its answer", "letters", COURIER, encode(LETTER))
    yield invalid("outbox", "101 letters", "letters", COURIER, *[encode(LETTER), "ok"] * 101)
    yield invalid("outbox", "what is no letter", "letters[0]", COURIER, b"\5", "ok")
    yield invalid("outbox", "another's letter", "letters[0]", COURIER, encode(LETTER), "ok", says="did not write it")
    yield refused("outbox", "one of a later format", "VERSION", "letters[0]", {"courier": "c"},
                  encode(LETTER | {"format": 2}), "ok")  # fmt: skip
    wrong = {"format": 0, "kind": "x", "id": "x", "from": "0", "to": "0", "system": 5, "at": -1}
    for field, value in wrong.items():
        yield invalid("outbox", f"a letter with {field} {value}", f"letters[0].{field}", COURIER,
                      encode(LETTER | {field: value}), "ok")  # fmt: skip
    for field, value in {"job": 5, "argument": "", "age_ms": -1, "least": "x", "generation": 0.5}.items():
        yield invalid("outbox", f"a letter of a job with {field} {value!r}", f"letters[0].{field}", COURIER,
                      encode(LETTER | JOB | {"kind": "enqueue", field: value}), "ok")  # fmt: skip
    for number in (-1, 256, 0.5, "0", True):
        yield invalid("outbox", f"except {number}", "except[1]", encode({"courier": "c", "except": [0, number]}))
