"""A worker process of the demo: `python -m jqmaster.demo.worker MASTER NAME JOURNAL push|pull`."""

from __future__ import annotations

import sys
from pathlib import Path

from jqmaster.demo.functions import FUNCTIONS
from jqmaster.demo.journal import Journal
from jqmaster.worker.run import WorkOptions, run

CONCURRENCY = 16


def main(arguments: list[str]) -> int:
    """Work until SIGTERM."""
    master, name, path, how = arguments
    journal = Journal(Path(path))
    return run(
        WorkOptions(
            functions={job: journal.around(function) for job, function in FUNCTIONS.items()},
            masters=[master],
            push=how == "push",
            concurrency=CONCURRENCY,
            name=name,
            drain_timeout_s=3.0,
            on_outcome=journal.note,
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
