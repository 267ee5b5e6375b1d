"""Enqueue and wait for the result, as the README does: `hello.py <url> work | ask <times>`."""

import json
import sys
import time

from jqmaster import JQ

jq = JQ(sys.argv[1])


@jq.job
def add(a: int, b: int) -> int:
    return a + b


def ask(times: int) -> list[float]:
    took_ms = []
    for n in range(times):
        began = time.perf_counter()
        assert add.enqueue(n, 1).result(timeout=20) == n + 1
        took_ms.append((time.perf_counter() - began) * 1000)
    return took_ms


if __name__ == "__main__":
    if sys.argv[2] == "work":
        jq.run()
    else:
        print(json.dumps(ask(int(sys.argv[3]))), flush=True)
