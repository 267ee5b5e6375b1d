"""The web UI of a master of a system: which partitions there are, how they are, and in which one a job is."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from jqmaster.system import bringing, calls
from jqmaster.system.engine import SystemEngine
from jqmaster.system.record import partition_of
from processes import MasterProcess
from servers import RedisServer
from test_ui_axe import LOOKS, found_by_axe, settled
from topologies import cluster
from ui_support import Server, Tab, Ui, browser, tab  # noqa: F401 (fixtures)

COUNT = 3


def run(of: Coroutine[Any, Any, Any]) -> Any:
    """In a thread: Playwright has a loop in this one."""
    with ThreadPoolExecutor() as pool:
        return pool.submit(asyncio.run, of).result()


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer() as redis:
        run(calls.create(redis.url, "{shop}", COUNT))
        yield redis


@pytest.fixture(scope="module")
def shop(redis: RedisServer) -> Iterator[Server]:
    with MasterProcess("--redis", redis.url, "--system", "{shop}") as master:
        server = Server(master.url)
        for _ in range(30):
            server.enqueue("mail", queue="mail")
        yield server


@pytest.fixture
def ui(tab: Tab, shop: Server) -> Iterator[Ui]:
    with tab.used(shop) as ui:
        yield ui


def test_each_partition_is_shown_with_what_is_in_it(ui: Ui, shop: Server) -> None:
    ui.go("/", "Overview")
    expect(ui.page.locator(".tile").filter(has_text="Partitions")).to_contain_text("all answer")
    ui.page.get_by_role("navigation").get_by_role("link", name="Partitions").click()
    expect(ui.page.locator(".verdict")).to_have_text(f"All {COUNT} partitions answer")
    told = shop.get("/partitions")["partitions"]
    assert sum(one["queued"] for one in told) == 30
    for one in told:
        row = ui.row(one["namespace"])
        expect(row).to_contain_text("active")
        for value in (one["queued"], one["slot"], one["buckets"], "one server"):
            expect(row).to_contain_text(str(value))
    numbers = ui.page.locator("tbody tr b")
    expect(numbers).to_have_text(["0", "1", "2"])
    ui.button("Waiting").click()
    most = sorted(told, key=lambda one: (-one["queued"], one["number"]))
    expect(numbers).to_have_text([str(one["number"]) for one in most])
    ui.page.keyboard.type("gp")
    expect(ui.page.locator("h1")).to_have_text("Partitions")
    ui.page.get_by_role("button", name="more of this system").click()
    expect(ui.dialog).to_contain_text(f"{{shop}}, {COUNT} partitions")


def test_what_is_behind_is_told_with_what_to_do(ui: Ui, redis: RedisServer) -> None:
    async def on_all(is_right: bool) -> None:
        engine = SystemEngine(redis.url, "{shop}")
        if is_right:
            await bringing.sync(engine)
        else:
            await (await engine.partitions())[2].queue("other", paused=True)
        await engine.close()

    ui.go("/partitions", "Partitions")
    run(on_all(False))
    below = ui.page.locator("tr.below")
    expect(below).to_contain_text("queue other", timeout=60_000)
    expect(below).to_contain_text("jqmaster system sync")
    expect(ui.page.locator("tbody tr b").first).to_have_text("2")
    expect(ui.page.locator(".verdict")).to_contain_text("1 is not as recorded")
    run(on_all(True))
    expect(below).to_have_count(0, timeout=60_000)
    expect(ui.page.locator(".verdict")).to_have_text(f"All {COUNT} partitions answer")


def test_a_job_says_in_which_partition_it_is_and_what_it_waits_for(ui: Ui, shop: Server) -> None:
    ids = [shop.enqueue("part", queue="parts")[0] for _ in range(12)]
    some = list({partition_of(job): job for job in ids}.values())
    assert len(some) > 1
    [last] = shop.enqueue("last", depends=some)
    ui.go(f"/job/{last}", "last")
    expect(ui.page.locator(".job-line")).to_contain_text(f"partition {partition_of(last)}")
    facts = ui.page.get_by_role("region", name="Facts")
    expect(facts).to_contain_text(f"Partition{partition_of(last)}")
    graph = ui.page.get_by_role("group", name="What it waits for")
    for job in some:
        expect(graph.locator(".node").filter(has_text=f"partition {partition_of(job)}")).to_have_count(1)
    ui.page.locator(".job-line").get_by_role("link", name="partition").click()
    expect(ui.page.locator("h1")).to_have_text("Partitions")


def test_a_namespace_alone_shows_none_of_this(browser: Browser, redis: RedisServer) -> None:
    with MasterProcess("--redis", redis.url, "--namespace", "{alone}") as master:
        server = Server(master.url)
        [job] = server.enqueue("mail")
        ui = Ui(browser.new_context(), server)
        ui.refusals = 1
        for path in ("/", f"/job/{job}"):
            ui.go(path)
            expect(ui.page.locator("h1")).to_be_visible()
            expect(ui.page.locator("main")).to_contain_text("mail")
            for part in ("main", "#nav"):
                expect(ui.page.locator(part)).not_to_contain_text("artition")
        ui.page.keyboard.type("gp")
        ui.go("/partitions", "Not found")
        ui.close()


def test_axe_finds_nothing(browser: Browser, shop: Server) -> None:
    ui = Ui(browser.new_context(reduced_motion="reduce"), shop)
    [job] = shop.enqueue("last", depends=shop.enqueue("part"))
    wrong = set()
    for target in ("/", "/partitions", f"/job/{job}"):
        ui.go(target)
        settled(ui)
        for look, (scheme, size, options) in LOOKS.items():
            ui.page.emulate_media(color_scheme=scheme)
            ui.page.set_viewport_size(size)
            ui.fits()
            ui.columns_fit()
            wrong |= {f"{target} {look}: {one}" for one in found_by_axe(ui.page, **options)}
    assert not wrong, "\n".join(sorted(wrong))
    ui.close()


@pytest.mark.faults
def test_a_partition_that_is_away_stands_first_and_comes_back(browser: Browser) -> None:
    with cluster(3, 0, 1500, "--cluster-require-full-coverage", "no") as nodes:
        record = run(calls.create(nodes.url, "{shop}", COUNT))
        away = nodes.owner(record.partitions[2].namespace)
        assert away.process is not None
        with MasterProcess("--redis", nodes.url, "--system", "{shop}") as master:
            server = Server(master.url)
            ids = [server.enqueue("part")[0] for _ in range(20)]
            of = {partition_of(job): job for job in ids}
            assert set(of) == {0, 1, 2}
            # It is where the first is that it waits for.
            [last] = server.enqueue("last", depends=[of[1], of[2]])
            page, overview, job = (
                Ui(browser.new_context(), server).go(path) for path in ("/partitions", "/", f"/job/{last}")
            )
            for ui in (page, overview, job):
                ui.refusals = 1000
            expect(job.page.locator(".node").filter(has_text="partition 2")).to_contain_text("queued")
            away.process.send_signal(signal.SIGSTOP)
            verdict = "1 of 3 partitions does not answer"
            expect(page.page.locator(".verdict")).to_have_text(verdict, timeout=60_000)
            expect(page.page.locator("tbody tr b").first).to_have_text("2")
            expect(page.row("no answer").first).to_contain_text(f":{away.port}")
            expect(page.page.locator("tr.below")).to_contain_text("Its jobs wait")
            expect(overview.page.locator(".verdict")).to_contain_text(verdict, timeout=60_000)
            expect(overview.page.locator(".tile").filter(has_text="Partitions")).to_contain_text("2 of 3")
            # Of a job whose partition answers the page stays, and the master is not taken for one that is away.
            job.page.reload()
            expect(job.page.locator("h1")).to_contain_text("last", timeout=60_000)
            expect(job.page.locator(".node").filter(has_text="partition 2")).to_contain_text("was queued")
            expect(job.page.locator("#live")).to_have_text("Live")
            job.go(f"/job/{of[2]}")
            expect(job.page.locator("main")).to_contain_text("partition 2, ", timeout=60_000)
            expect(job.page.locator("#banner")).to_contain_text("Partition 2 does not answer")
            job.page.get_by_role("link", name="Look at the partitions").click()
            expect(job.page.locator("h1")).to_have_text("Partitions")
            for look, (scheme, size, options) in LOOKS.items():
                job.page.emulate_media(color_scheme=scheme)
                job.page.set_viewport_size(size)
                job.fits()
                job.columns_fit()
                assert not found_by_axe(job.page, **options), look
            away.process.send_signal(signal.SIGCONT)
            expect(page.page.locator(".verdict")).to_have_text(f"All {COUNT} partitions answer", timeout=60_000)
            for ui in (page, overview, job):
                expect(ui.page.locator("#banner")).to_be_hidden(timeout=60_000)
                ui.close()
