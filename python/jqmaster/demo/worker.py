"""A worker process of the demo: `python -m jqmaster.demo.worker MASTER NAME JOURNAL push|pull`.

Its functions stand in for the work that job queues are used for.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from jqmaster.demo.journal import Journal
from jqmaster.demo.plan import invoice_result
from jqmaster.worker.failure import JobFailed
from jqmaster.worker.notes import current_job
from jqmaster.worker.run import WorkOptions, run

CONCURRENCY = 16


async def nothing(argument: dict[str, Any]) -> None:
    """Quick, and nobody asks for a result."""


async def invoice(argument: dict[str, Any]) -> dict[str, Any]:
    """Gives a result that is kept."""
    return invoice_result(argument)


async def sync_account(argument: dict[str, Any]) -> None:
    """The other side is flaky: it fails until it has failed `fails` times."""
    if current_job.get().retry_count < argument["fails"]:
        raise ConnectionError(f"account {argument['account']} does not answer")


async def charge_card(argument: dict[str, Any]) -> None:
    """Fails for good: at once when the card is refused, else after the last retry."""
    if argument["refused"]:
        raise JobFailed("the card is refused", retry=False, error={"card": argument["card"]})
    raise TimeoutError("the bank does not answer")


async def report(argument: dict[str, Any]) -> None:
    """Takes its time, and no customer may have many running at once."""
    await asyncio.sleep(argument["pages"] * 0.01)


FUNCTIONS = {
    "thumbnail": nothing,
    "invoice": invoice,
    "sync-account": sync_account,
    "charge-card": charge_card,
    "reminder": nothing,
    "report": report,
}


def main(arguments: list[str]) -> int:
    """Work until SIGTERM."""
    master, name, path, how = arguments
    return run(
        WorkOptions(
            functions=FUNCTIONS,
            masters=[master],
            push=how == "push",
            concurrency=CONCURRENCY,
            name=name,
            drain_timeout_s=3.0,
            on_outcome=Journal(Path(path)).note,
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
