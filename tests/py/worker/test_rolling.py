"""Workers are restarted one after the other while they work; and what would say so if that went wrong."""

import pytest

from rolling import Plan, soak
from rolling_check import Run, Sent, of_job, of_limit, told


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_nothing_is_lost_doubled_or_spent_by_restarts() -> None:
    shown, faults = soak(Plan(seconds=45, over_s=8))  # as the machine may be busy
    print(shown)
    assert not faults, told(faults)


def run(attempt: int, begun: float, seen: float, how: str = "whole", *, is_late: bool = False) -> Run:
    return Run(1, "a", attempt, 100 + attempt, attempt, begun, seen, how, is_late)


def job(*runs: Run, ends: tuple[str, ...] = ("done",), status: str = "done", customer: str = "") -> Sent:
    events = [{"event": end, "time_ms": 0, "attempt": number} for number, end in enumerate(ends, 1)]
    return Sent(1, "a", "mail", customer, runs=list(runs), document={"status": status}, events=events)


@pytest.mark.parametrize(
    ("one", "kinds"),
    [
        (job(run(1, 0, 1)), []),
        (job(run(1, 0, 1, "cut"), run(2, 1.1, 2), ends=("released", "done")), []),
        (job(run(1, 0, 1, ""), run(2, 1.1, 2), ends=("released", "done")), []),
        (job(run(1, 0, 1, "raised"), run(2, 1.1, 2), ends=("failed", "done")), []),
        (job(run(1, 0, 1, "cut"), run(2, 0.9, 2), ends=("released", "done")), ["overlap"]),
        (job(run(1, 0, 9, ""), run(2, 9.1, 9.2, ""), run(3, 9.3, 9.4), ends=("released", "released", "done")), []),
        (
            job(run(1, 0, 9, "cut"), run(2, 1, 2, "cut"), run(3, 3, 4), ends=("released", "released", "done")),
            ["overlap", "overlap"],
        ),
        (job(run(1, 0, 1, is_late=True), run(2, 1.1, 2), ends=("released", "done")), []),
        (job(run(1, 0, 1, ""), run(1, 1.1, 2), ends=("done",)), ["doubled", "open"]),
        (job(run(1, 0, 1), run(2, 1.1, 2), ends=("released", "done")), ["doubled"]),
        (job(run(1, 0, 1, ""), run(2, 1.1, 2), ends=("lapsed", "done")), ["spent"]),
        (job(ends=("lapsed",), status="error"), ["end", "spent"]),
        (job(run(1, 0, 1, "cut"), ends=()), ["open"]),
        (job(run(1, 0, 1, "cut"), ends=("done",)), ["open"]),
        (job(ends=(), status="queued"), ["end"]),
    ],
)
def test_what_is_wrong_with_a_job_is_found(one: Sent, kinds: list[str]) -> None:
    assert [kind for kind, _ in of_job(one)] == kinds


def test_two_jobs_of_a_customer_at_a_time_are_found() -> None:
    first, next_, other = (job(run(1, begun, begun + 1), customer=c) for begun, c in ((0, "a"), (1.5, "a"), (0.5, "b")))
    assert list(of_limit([first, next_, other])) == []
    late = job(run(1, 0.9, 1.2), customer="a")
    assert [one for one, _ in of_limit([first, next_, other, late])] == [late]
