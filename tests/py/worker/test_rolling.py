"""Workers are restarted one after the other while they work; and what would say so if that went wrong."""

import pytest

from rolling import Plan, soak
from rolling_check import Run, Sent, of_job


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_nothing_is_lost_doubled_or_spent_by_restarts() -> None:
    shown, faults = soak(Plan(seconds=45, over_s=8))  # as the machine may be busy
    print(shown)
    assert not faults, "\n".join(faults[:20])


def run(attempt: int, begun: float, seen: float, how: str = "whole", *, is_late: bool = False) -> Run:
    return Run(1, "a", attempt, 100 + attempt, attempt, begun, seen, how, is_late)


def job(*runs: Run, status: str = "done", customer: str = "", retries: int = 0) -> Sent:
    return Sent(1, "a", "mail", customer, runs=list(runs), document={"status": status, "retry_count": retries})


@pytest.mark.parametrize(
    ("sent", "wrong"),
    [
        (job(run(1, 0, 1)), []),
        (job(run(1, 0, 1, "cut"), run(2, 1.1, 2)), []),
        (job(run(1, 0, 1, "raised"), run(2, 1.1, 2), retries=1), []),
        (job(run(1, 0, 1, is_late=True), run(2, 1.1, 2)), []),
        (job(run(1, 0, 1, "cut"), run(2, 0.9, 2)), ["attempt 2 began 0.10 s before 1 was over"]),
        (job(run(1, 0, 9, "cut"), run(2, 1, 2, "cut"), run(3, 3, 9)), [f"attempt {n} began" for n in (2, 3)]),
        (job(run(1, 0, 1, ""), run(1, 1.1, 2)), ["attempt 1 began 2 times"]),
        (job(run(1, 0, 1), run(2, 1.1, 2)), ["ran whole 2 times"]),
        (job(run(1, 0, 1, ""), run(2, 1.1, 2), retries=1), ["1 retries were spent"]),
        (job(status="queued"), ["is queued, not done"]),
    ],
)
def test_what_is_wrong_with_a_job_is_found(sent: Sent, wrong: list[str]) -> None:
    found = list(of_job(sent))
    assert len(found) == len(wrong) and all(one.startswith(says) for one, says in zip(found, wrong, strict=True)), found
