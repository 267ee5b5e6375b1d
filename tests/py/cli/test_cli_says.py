"""What commands say to somebody who mistypes, and to operators who look."""

from __future__ import annotations

import time

import pytest

from cli_support import Cli, call, cli_, straight  # noqa: F401 (fixtures)
from test_cli_jobs import work

HINTS = {
    ("work", "--concurency", "3", "hello:jq"): (
        "jqmaster work: no such option: --concurency; did you mean --concurrency?",
        "See jqmaster work --help",
    ),
    ("work", "hello:jq", "--log-formt=json"): (
        "jqmaster work: no such option: --log-formt; did you mean --log-format?",
        "See jqmaster work --help",
    ),
    ("queues", "--sorrt", "age"): (
        "jqmaster queues: no such option: --sorrt; did you mean --sort?",
        "See jqmaster queues --help",
    ),
    ("queues", "pause", "a", "--zzz"): (
        "jqmaster queues pause: no such option: --zzz",
        "See jqmaster queues pause --help",
    ),
    ("constraints", "set", "--conc", "1", "c", "{}"): (
        "jqmaster constraints set: no such option: --conc; did you mean --concurrency?",
        "See jqmaster constraints set --help",
    ),
    ("--verbos", "queues"): ("jqmaster: no such option: --verbos; did you mean --verbose?", "See jqmaster --help"),
    ("work", "a:b", "c:d"): ("jqmaster work: unexpected argument: c:d", "See jqmaster work --help"),
}


@pytest.mark.parametrize("arguments", HINTS, ids=" ".join)
def test_an_option_that_does_not_exist_names_what_is_meant_and_the_right_help(call, arguments) -> None:  # type: ignore[no-untyped-def]
    said = call(*arguments)
    assert said.code == 2
    assert tuple(said.err.splitlines()) == HINTS[arguments]


def test_search_tells_the_state_of_a_job(cli_: Cli) -> None:
    job_id = cli_.ok("enqueue", "mail").out.strip()
    [row] = [line for line in cli_.ok("search", job_id).out.splitlines() if line.startswith("job ")]
    assert row.split(maxsplit=2)[2] == "mail: queued"


def test_a_group_that_no_job_failed_with_is_not_found(cli_: Cli) -> None:
    cli_.ok("enqueue", "mail", "--max-retry", "0")
    [job] = cli_.engine(lambda it: it.pick("w", "mail")).jobs
    outcome = {"id": job.id, "token": job.token, "type": "failure", "group": "aiosmtplib.errors.Refused"}
    cli_.engine(lambda it: it.finish("w", [(outcome, b"\xc0")]))
    for command in (["retry", "--yes"], ["discard", "--yes"], ["retry", "--dry-run"], ["jobs"], ["failures"]):
        said = cli_.run(*command, "--group", "Refused")
        assert (said.code, said.out) == (3, ""), command
        assert "no job has failed for good in the group Refused" in said.err
        assert "did you mean aiosmtplib.errors.Refused?" in said.err
        assert "jqmaster failures lists" in cli_.run(*command, "--group", "zzzzzz").err
    assert cli_.ok("retry", "--yes", "--group", "aiosmtplib.errors.Refused").out == "retried 1 job\n"


def test_moments_of_a_schedule_name_their_zone(
    cli_: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    said = cli_.ok("schedules", "set", "night", "report", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin").out
    assert " 02:30:00 Europe/Berlin, in " in said
    shown = cli_.ok("schedules", "show", "night", "--next", "2").out.splitlines()
    assert sum(" 02:30:00 Europe/Berlin, in " in line for line in shown) == 2
    cli_.ok("schedules", "set", "east", "report", "--cron", "30 2 * * *", "--utc-offset", "330")
    assert " 02:30:00 UTC+05:30, in " in cli_.ok("schedules", "show", "east").out
    cli_.ok("schedules", "set", "here", "report", "--cron", "30 2 * * *")
    assert " 02:30:00 UTC, in " in cli_.ok("schedules", "show", "here").out


def test_who_looks_at_a_result_leaves_it_to_the_program(cli_: Cli) -> None:
    cli_.ok("config", "set", "result_grace=0")
    job_id = cli_.ok("enqueue", "mail", "--keep-result").out.strip()
    work(cli_, "mail")
    for _ in range(2):
        assert cli_.ok("result", job_id).out == '{"sum":42}\n'
    assert cli_.ok("get", job_id, "--json").document["result"] == {"sum": 42}
    assert cli_.jq.handle(job_id).result(timeout=10) == {"sum": 42}
    assert cli_.run("result", job_id).code == 6


def test_a_queue_that_got_more_than_it_did_is_growing_and_not_empty_never(cli_: Cli) -> None:
    for _ in range(3):
        cli_.ok("enqueue", "mail")
    cli_.ok("queues", "pause", "mail")
    row = cli_.ok("queues").out.splitlines()[1]
    assert "growing" in row and "never" not in row
