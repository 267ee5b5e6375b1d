"""The reference model and the engine where much is to be done at once, which sequences of `driving`
seldom have: what goes in steps, and long lists of moments."""

import random
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from driving.playing import MANY, bring, run
from model.cron import ZONES


def sweep(driver):
    """Ticks until nothing is left; gives how many it took."""
    for calls in range(1, 100):
        if run(driver, "tick")[0] != 0:
            return calls
    raise AssertionError("tick never comes to an end")


def states(driver):
    return {job.status for job in driver.model.jobs.values()}


def finish(driver, *jobs, **outcome):
    run(driver, "pick", worker="w", queues="*", count=1000)
    outcomes = [[{"id": job, "token": 1, "type": "success"} | outcome, b"\xc0"] for job in jobs]
    run(driver, "finish", worker="w", outcomes=outcomes)


# The hours in which clocks are changed, at given times and at any.
CHANGING = ("30 2 * * *", "0,45 1-3 * * *", "15 */2 * * *", "*/10 2 * * *", "30 * * * *", "30 1,2 * * 0",
            "0 3 * * *")  # fmt: skip


class TestDependencies:
    @pytest.mark.parametrize("if_failed", ["wait", "fail", "run"])
    def test_many_depend_on_one(self, driver, if_failed):
        (first,) = bring(driver, "first", {})
        bring(driver, "all", *[{"depends": [first], "if_failed": if_failed}] * MANY)
        finish(driver, first, type="failure", should_retry=False)
        assert sweep(driver) > 2
        assert states(driver) == {"error", {"wait": "blocked", "fail": "error", "run": "queued"}[if_failed]}

    def test_all_that_follow_are_cancelled(self, driver):
        tree = [{"depends": [number // 2]} for number in range(MANY)]
        jobs = bring(driver, "tree", {}, *tree)
        run(driver, "cancel", ids=jobs[:1], dependents="cancel")
        sweep(driver)
        assert states(driver) == {"cancelled"}


class TestFinding:
    @pytest.mark.parametrize("count", [None, 7])
    def test_all_jobs_that_fit_are_retried_and_discarded(self, driver, count):
        page = {} if count is None else {"count": count}
        jobs = bring(driver, "all", *[{"tags": ["odd" if number % 2 else "even"]} for number in range(MANY)])
        finish(driver, *jobs, type="failure", should_retry=False, group="g", message="no such host")
        run(driver, "jobs", where={"group": "g"}, **page)
        run(driver, "failures", **page)
        run(driver, "retry", where={"tag": "odd", "message": "such"}, **page)
        run(driver, "jobs", where={"tag": "odd"}, newest=True, brief=True, **page)
        run(driver, "discard", where={"status": ["error", "queued"], "tag": "even"}, **page)
        run(driver, "cancel", where={"queue": "many"}, **page)
        run(driver, "tags", **page)
        assert states(driver) == {"cancelled"} and len(driver.model.jobs) == MANY // 2


class TestSchedules:
    @pytest.mark.parametrize("seed", range(20))
    def test_moments_of_cron_are_those_that_fit_minute_by_minute(self, driver, seed):
        rng = random.Random(seed)
        for _ in range(10):
            fields = {"cron": cron(rng)}
            run(driver, "schedule", id="s", **fields, job={"name": "a"}, argument=b"\xc0")
            run(driver, "schedules", ids=["s"], next=15)

    @pytest.mark.parametrize(("timezone", "tz"), ZONES)
    def test_moments_of_clocks_that_are_changed(self, driver, timezone, tz):
        for start in (1_709_900_000, 1_711_600_000, 1_728_000_000, 1_729_900_000):  # 2024, days before clocks change
            first, last = (datetime.fromtimestamp(at, ZoneInfo(timezone)) for at in (start, start + 4 * 86_400))
            if first.utcoffset() == last.utcoffset():
                continue
            run(driver, "clock", delta_ms=start * 1000 - driver.model.now)
            for when in CHANGING:
                fields = {"cron": when, "timezone": timezone, "tz": tz}
                run(driver, "schedule", id="s", **fields, job={"name": "a"}, argument=b"\xc0")
                run(driver, "schedules", ids=["s"], next=50)


SPANS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def cron(rng):
    return " ".join(",".join(part(rng, *span) for _ in range(rng.choice((1, 1, 1, 2)))) for span in SPANS)


def part(rng, least, most):
    if rng.random() < 0.4:
        return rng.choice(("*", "*", "*", f"*/{rng.randint(1, most)}"))
    first = rng.randint(least, most)
    last = rng.randint(first, most)
    return rng.choice((f"{first}", f"{first}-{last}", f"{first}-{last}/{rng.randint(1, most)}",
                       f"{first}/{rng.randint(1, most)}"))  # fmt: skip
