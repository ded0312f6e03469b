"""The table of jobs: its order, its columns, actions on several jobs, and the example of an empty one."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, Locator, Route, expect

from tests.dashboard.browser import Tab, opened
from tests.dashboard.conftest import NAMESPACE, ClosedGateway
from tests.e2e.user import User, job
from tests.support.gateways.bearer import bearer
from tests.support.postgres import connected

pytestmark = pytest.mark.asyncio(loop_scope="session")


def row(tab: Tab, name: str) -> Locator:
    return tab.page.get_by_role("row").filter(has=tab.page.get_by_role("link", name=name, exact=True))


def names(tab: Tab) -> Locator:
    return tab.page.locator("[role=row] .column-name a")


def labelled(name: str, script: str, **labels: str) -> dict[str, Any]:
    manifest = job(name, script)
    manifest["metadata"]["labels"] = labels
    return manifest


async def test_columns_sort_show_owners_and_labels_and_back_returns(tab: Tab, user: User) -> None:
    for name, script, team in (
        ("sorted-b", "exit 3", "vision"),
        ("sorted-c", "exit 0", "speech"),
        ("sorted-a", "exit 0", ""),
    ):
        await user.submit(labelled(name, script, **({"team": team} if team else {})))
        await user.ended(name)
    await tab.open("#/jobs?text=sorted-")
    newest, ascending = ["sorted-a", "sorted-c", "sorted-b"], ["sorted-a", "sorted-b", "sorted-c"]
    await expect(names(tab)).to_have_text(newest)
    by_name = tab.page.get_by_role("button", name="Name", exact=True)
    heading = tab.page.get_by_role("columnheader", name="Name")
    for order, sorting in ((ascending, "ascending"), (ascending[::-1], "descending")):
        await by_name.click()
        await expect(names(tab)).to_have_text(order)
        await expect(heading).to_have_attribute("aria-sort", sorting)
    await expect(tab.page).to_have_url(re.compile(r"\?text=sorted-&sort=-name$"))
    await tab.page.get_by_role("button", name="Phase", exact=True).click()
    await expect(names(tab)).to_have_text(["sorted-a", "sorted-c", "sorted-b"])
    await tab.page.get_by_label("Label columns").fill("team")
    await tab.page.keyboard.press("Enter")
    await expect(row(tab, "sorted-b").locator(".column-label")).to_have_text("vision")
    await expect(row(tab, "sorted-a").locator(".column-label")).to_have_text("\N{EN DASH}")
    await expect(row(tab, "sorted-a").locator(".column-owner")).to_have_text("anonymous")
    assert await tab.accessibility_problems() == []
    for address in (r"sort=phase$", r"sort=-name$", r"sort=name$", r"text=sorted-$"):
        await tab.page.go_back()
        await expect(tab.page).to_have_url(re.compile(address))
    await expect(names(tab)).to_have_text(newest)
    await tab.page.go_forward()
    await expect(names(tab)).to_have_text(ascending)


async def test_back_and_forward_walk_through_filters(tab: Tab, user: User) -> None:
    for name, script in (("walk-fails", "exit 3"), ("walk-succeeds", "exit 0")):
        await user.submit(job(name, script))
        await user.ended(name)
    await tab.open("#/jobs")
    await tab.page.get_by_role("searchbox").press_sequentially("walk-", delay=400)
    await expect(names(tab)).to_have_text(["walk-succeeds", "walk-fails"])
    await tab.page.get_by_role("group", name="Phase").get_by_role("button", name=re.compile("^Failed")).click()
    await expect(names(tab)).to_have_text(["walk-fails"])
    await tab.page.go_back()
    await expect(names(tab)).to_have_text(["walk-succeeds", "walk-fails"])
    await expect(tab.page.get_by_role("searchbox")).to_have_value("walk-")
    await tab.page.go_back()  # all letters of the search are one step
    await expect(tab.page.get_by_role("searchbox")).to_have_value("")
    await expect(tab.page).to_have_url(re.compile("#/jobs$"))
    await tab.page.go_forward()
    await tab.page.go_forward()
    await expect(names(tab)).to_have_text(["walk-fails"])


async def test_several_jobs_are_cancelled_retried_and_deleted(tab: Tab, user: User) -> None:
    for name, script in (("several-done", "exit 0"), ("several-one", "sleep 600"), ("several-two", "sleep 600")):
        await user.submit(job(name, script))
    await user.ended("several-done")
    for name in ("several-one", "several-two"):
        await user.until(name, "Running")
    await tab.open("#/jobs?text=several-")
    bar = tab.page.get_by_role("region", name="Selected jobs")
    for name in ("several-done", "several-one", "several-two"):
        await tab.page.get_by_role("checkbox", name=f"Select {name}").check()
    await expect(bar).to_contain_text("3 jobs selected")
    await bar.get_by_role("button", name="Cancel", exact=True).click()
    dialog = tab.page.get_by_role("dialog", name="Cancel 2 jobs")
    await expect(dialog).to_contain_text("left out: The job has ended as Succeeded.")
    assert await tab.accessibility_problems() == []
    await dialog.get_by_label("Reason").fill("a wrong rate")
    # Somebody else is faster with one of them.
    await user.call("POST", "/several-two/cancel", 202, json={"reason": "a wrong rate"})
    await user.until("several-two", "Cancelled")
    await dialog.get_by_role("button", name="Cancel 2 jobs").click()
    await expect(dialog).to_contain_text("2 of 2 jobs answered.")
    await expect(dialog.get_by_role("listitem").filter(has_text="several-one")).to_contain_text(
        "requested: several-one"
    )
    await expect(dialog.get_by_role("listitem").filter(has_text="several-two")).to_contain_text(
        "not done: The job has ended as Cancelled."
    )
    await dialog.get_by_role("button", name="Close").click()
    await expect(bar).to_have_count(0)
    for name in ("several-one", "several-two"):
        await user.until(name, "Cancelled")
        assert "a wrong rate" in (await user.read(f"/{name}/status"))["status"]["message"]
        await expect(row(tab, name).get_by_text("Cancelled", exact=True)).to_be_visible()
    for name in ("several-one", "several-done"):
        await tab.page.get_by_role("checkbox", name=f"Select {name}").check()
    await bar.get_by_role("button", name="Retry", exact=True).click()
    await tab.page.get_by_role("button", name="Retry 2 jobs").click()
    results = tab.page.get_by_role("dialog").get_by_role("link", name=re.compile("^several-(one|done)-"))
    await expect(results).to_have_count(2)
    # The new jobs move the rows below them.
    await expect(names(tab)).to_have_count(5)
    await tab.page.get_by_role("dialog").get_by_role("button", name="Close").click()
    await tab.page.get_by_role("checkbox", name="Select several-two").check()
    await bar.get_by_role("button", name="Delete", exact=True).click()
    await tab.page.get_by_role("button", name="Delete 1 job").click()
    await tab.page.get_by_role("dialog").get_by_role("button", name="Close").click()
    await expect(row(tab, "several-two")).to_have_count(0)


async def test_the_cause_of_a_failure_is_what_the_job_said_last(tab: Tab, user: User) -> None:
    await user.submit(job("last-words", "echo loading; echo 'ValueError: bad rate'; echo; exit 7"))
    await user.ended("last-words")
    await tab.open("#/jobs?text=last-words")
    cause = row(tab, "last-words").locator(".column-cause")
    await expect(cause).to_have_text(re.compile(r"^ValueError: bad rate \(worker\[0\] exited with 7"))
    await expect(row(tab, "last-words").locator(".progress-count")).to_have_text("0/1")


TABLE: Final = """document.querySelector('[role=table][aria-label="Jobs"]')"""


@pytest.mark.parametrize("width", [1280, 1000, 760])
async def test_nothing_moves_when_counts_arrive_and_chips_come(tab: Tab, user: User, width: int) -> None:
    await user.submit(labelled(f"still-{width}", "exit 0", team="vision"))
    await user.ended(f"still-{width}")
    counts, answer = asyncio.Event(), asyncio.Event()
    await tab.page.route("**/api/v1/jobs/counts*", late(counts))
    await tab.page.set_viewport_size({"width": width, "height": 700})
    await tab.open(f"#/jobs?text=still-{width}")
    await expect(row(tab, f"still-{width}")).to_be_visible()
    before = await box_of_table(tab)
    counts.set()
    phases = tab.page.get_by_role("group", name="Phase").get_by_role("button")
    await expect(phases).to_have_count(1)
    assert await box_of_table(tab) == before
    await tab.page.get_by_role("checkbox").first.check()
    await expect(tab.page.get_by_role("region", name="Selected jobs")).to_be_visible()
    assert await box_of_table(tab) == before
    # The rows stay until those that match other filters have arrived.
    await tab.page.route("**/api/v1/jobs?*labelSelector=*", late(answer))
    async with tab.page.expect_request(lambda request: "/api/v1/jobs?" in request.url and "phase=" in request.url):
        await tab.page.get_by_label("Label selector").fill("team")
        await phases.click()
    await expect(tab.page).to_have_url(re.compile("phase=Succeeded&label=team"))
    await expect(row(tab, f"still-{width}")).to_be_visible(timeout=1)
    assert await box_of_table(tab) == before
    await tab.page.evaluate(f"{TABLE}.dataset.former = ''")
    answer.set()
    await expect(tab.page.locator("[data-former]")).to_have_count(0)
    assert await box_of_table(tab) == before


async def box_of_table(tab: Tab) -> Any:
    """Return the position and size of the table, read in one step because the page may replace it between two."""
    return await tab.page.evaluate(f"{TABLE}.getBoundingClientRect().toJSON()")


def late(event: asyncio.Event) -> Callable[[Route], Awaitable[None]]:
    """Return a handler that lets requests pass after the event."""

    async def handler(route: Route) -> None:
        await event.wait()
        await route.continue_()

    return handler


async def test_enter_goes_to_the_next_match_of_a_log(tab: Tab, user: User) -> None:
    created = await user.submit(job("log-enter", "for i in 1 2 3 4 5 6; do echo step $i; echo loss $i; done"))
    await user.ended("log-enter")
    await tab.open(f"#/jobs/{created['uid']}/logs")
    await expect(tab.page.get_by_text("loss 6", exact=True)).to_be_visible()
    await tab.page.keyboard.press("/")
    await tab.page.keyboard.type("loss")
    current = tab.page.locator(".log-line.is-current")
    # Enter also counts when it follows the last letter at once.
    for expected in ("loss 1", "loss 2", "loss 3"):
        await tab.page.keyboard.press("Enter")
        await expect(current).to_have_text(expected)
    await tab.page.keyboard.press("Shift+Enter")
    await expect(current).to_have_text("loss 2")


async def test_mine_shows_the_jobs_of_the_user(browser: Browser, closed_gateway: ClosedGateway) -> None:
    await closed_gateway.user.submit(job("of-another", "exit 0"))
    mine = await bearer(closed_gateway.database_url, "admin", NAMESPACE)
    await User(closed_gateway.user.http, NAMESPACE, mine).submit(job("of-mine", "exit 0"))
    async with opened(browser, closed_gateway.url, token=mine["Authorization"].removeprefix("Bearer ")) as tab:
        await tab.open()
        await expect(names(tab)).to_have_text(["of-mine", "of-another"])
        await expect(row(tab, "of-another").locator(".column-owner")).to_contain_text("a submitter token:")
        await tab.page.get_by_role("button", name="mine", exact=True).click()
        await expect(names(tab)).to_have_text(["of-mine"])
        await expect(tab.page).to_have_url(re.compile(r"\?owner=me$"))
        await User(closed_gateway.user.http, NAMESPACE, mine).submit(job("of-mine-too", "exit 0"))
        await closed_gateway.user.submit(job("of-another-too", "exit 0"))
        await expect(names(tab)).to_have_text(["of-mine-too", "of-mine"])
        await tab.open("#/jobs?owner=a+submitter")
        await expect(names(tab)).to_have_text(["of-another-too", "of-another"])
        await tab.page.get_by_role("button", name="a submitter", exact=True).click()
        await expect(tab.page).to_have_url(re.compile("#/jobs$"))


async def test_an_imported_job_is_marked_in_the_table_and_on_its_page(
    browser: Browser, closed_gateway: ClosedGateway
) -> None:
    for name in ("of-here", "of-an-export"):
        await closed_gateway.user.submit(job(name, "exit 0"))
        await closed_gateway.user.ended(name)
    await mark_as_imported(closed_gateway, "now()")
    async with opened(browser, closed_gateway.url, token=closed_gateway.token) as tab:
        await tab.open()
        marks = {name: row(tab, name).get_by_text("imported") for name in ("of-here", "of-an-export")}
        await expect(marks["of-an-export"]).to_be_visible()
        await expect(marks["of-here"]).to_have_count(0)
        assert await tab.accessibility_problems() == []
        await row(tab, "of-an-export").get_by_role("link", name="of-an-export").click()
        await expect(tab.page.get_by_text("This record was imported from an export")).to_be_visible()
    # The controller removes no object of an imported job, and the next test needs an empty cluster.
    await mark_as_imported(closed_gateway, "NULL")


async def mark_as_imported(gateway: ClosedGateway, at: str) -> None:
    async with connected(gateway.database_url) as connection:
        await connection.execute(
            f"UPDATE jobs SET imported_at = {at}, version = version + 1 WHERE name = 'of-an-export'"
        )


async def test_the_empty_table_submits_an_example(browser: Browser, closed_gateway: ClosedGateway) -> None:
    async with opened(browser, closed_gateway.url, token=closed_gateway.token) as tab:
        await tab.open()
        await expect(tab.page.get_by_text("No job has been submitted yet.")).to_be_visible()
        assert await tab.accessibility_problems() == []
        await tab.page.get_by_role("button", name="Submit the example").click()
        await expect(row(tab, "hello").get_by_text("Succeeded", exact=True)).to_be_visible()


async def test_the_command_of_the_empty_table_does_the_same(
    browser: Browser, closed_gateway: ClosedGateway, tmp_path: Path
) -> None:
    async with opened(browser, closed_gateway.url, token=closed_gateway.token) as tab:
        await tab.open()
        command = await tab.page.get_by_role("region", name="Command").inner_text()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        settings = {
            "JOBGATE_TOKEN": closed_gateway.token,
            "JOBGATE_CONFIG": str(tmp_path / "config.yaml"),
            "PATH": path,
        }
        shell = await asyncio.create_subprocess_exec(
            "bash", "-c", command, env=os.environ | settings, stdout=PIPE, stderr=STDOUT
        )
        output, _ = await shell.communicate()
        assert shell.returncode == 0, output.decode()
        await expect(row(tab, "hello").get_by_text("Succeeded", exact=True)).to_be_visible()
