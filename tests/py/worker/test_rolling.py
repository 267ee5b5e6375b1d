"""Workers and masters are replaced one after the other while they work, by those of another version as well; and what
would say so if that went wrong."""

import pytest

from rolling import Run, Sent, soak


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_nothing_is_lost_doubled_or_spent_by_restarts() -> None:
    shown, faults = soak(45)
    print(shown)
    assert not faults, "\n".join(faults[:20])


def run(attempt: int, begun: float, seen: float, how: str = "whole", *, is_late: bool = False) -> Run:
    return Run(attempt, 100 + attempt, attempt, begun, seen, how, is_late)


@pytest.mark.parametrize(
    ("runs", "document", "wrong"),
    [
        ([run(1, 0, 1, "raised"), run(2, 1.1, 2)], {"status": "done", "retry_count": 1}, []),
        ([run(1, 0, 1, is_late=True), run(2, 1.1, 2)], {}, []),
        ([run(1, 0, 9, "cut"), run(2, 1, 2, "cut"), run(3, 3, 9)], {}, [f"attempt {n} began" for n in (2, 3)]),
        ([run(1, 0, 1, ""), run(1, 1.1, 2)], {}, ["attempt 1 began 2 times"]),
        ([run(1, 0, 1), run(2, 1.1, 2)], {}, ["ran whole 2 times"]),
        ([run(1, 0, 1, ""), run(2, 1.1, 2)], {"retry_count": 1}, ["1 retries were spent"]),
        ([], {"status": "queued"}, ["is queued, not done"]),
    ],
)
def test_what_is_wrong_with_a_job_is_found(runs: list[Run], document: dict[str, object], wrong: list[str]) -> None:
    found = list(Sent(runs=runs).faults({"status": "done", "retry_count": 0, **document}))
    assert len(found) == len(wrong) and all(one.startswith(says) for one, says in zip(found, wrong, strict=True)), found
