"""A log that is kept whole and is too long for the page: its places, times, search, and addresses of lines."""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from app.domain.kept_logs.records import GapReason
from app.log_store import open_store
from tests.dashboard.browser import Tab, opened
from tests.dashboard.logs import lines_in_view
from tests.support.gateways.gateway import running_gateway
from tests.support.kept_logs import finish, keep, store_ended_job, timed
from tests.support.postgres import fresh_database
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

# 4 MB, or more for a look at what a reader feels: JOBGATE_TEST_LOG_LINES=1000000.
HAS_MORE = "log => log.scrollHeight - log.scrollTop - log.clientHeight > 2000"
LINES = int(os.environ.get("JOBGATE_TEST_LOG_LINES", "40000"))
GAP = LINES // 2
NEEDLE = LINES * 3 // 4


def line(number: int) -> bytes:
    return f"line {number} {'needle' if number == NEEDLE else 'loss'} {'x' * 80}".encode()


@pytest_asyncio.fixture(loop_scope="session")
async def whole(
    browser: Browser, postgres_server_url: str, database_template: str, tmp_path: Path
) -> AsyncIterator[tuple[Tab, str]]:
    """A tab, and the uid of an ended job whose replica has a long log with a gap."""
    store = open_store(f"file://{tmp_path}")
    async with (
        fresh_database(postgres_server_url, template=database_template) as url,
        running_gateway(url, log_store=store) as gateway,
    ):
        key = await store_ended_job(gateway, "whole")
        log = await keep(gateway.db, store, key)
        for first in range(0, LINES, 10_000):
            last = min(first + 10_000, LINES)
            gap = GapReason.ROTATED if last == GAP else None
            log = await keep(gateway.db, store, key, timed(*map(line, range(first, last)), first=first), gap=gap)
        await finish(gateway.db, log)
        async with opened(browser, gateway.url) as tab:
            yield tab, str(key.job_uid)


async def shows(page: Page, number: int) -> bool:
    return any(text.startswith(f"line {number} ") for text in await lines_in_view(page))


async def until_shown(page: Page, number: int) -> None:
    await until(lambda: shows(page, number), what=f"line {number} is in view")


def place_of(number: int) -> int:
    return sum(len(line(each)) + 1 for each in range(number))


async def test_a_reader_moves_through_a_whole_log(whole: tuple[Tab, str]) -> None:
    tab, uid = whole
    page = tab.page
    await tab.open(f"#/jobs/{uid}/logs")
    await page.get_by_role("button", name="Whole log").click()
    await until_shown(page, 0)
    log = page.get_by_role("log")
    # Further lines come while the reader scrolls, and the page keeps few of them.
    for _ in range(4):
        await log.evaluate("log => { log.scrollTop = log.scrollHeight; }")
        await until(lambda: log.evaluate("log => log.scrollHeight - log.scrollTop - log.clientHeight > 2000"))
    assert await page.locator(".log-line").count() < 150
    first = int((await lines_in_view(page))[0].split()[1])
    assert first > 8000
    await page.get_by_role("slider", name="Position in the log").fill(str(place_of(GAP)))
    await page.get_by_role("slider", name="Position in the log").blur()
    await until_shown(page, GAP)
    assert any("[jobgate] the node had deleted" in text for text in await lines_in_view(page))
    # A number is the address of its line, also in another tab.
    await page.locator(".log-number").get_by_text(str(GAP + 3), exact=True).click()
    await expect(page.locator(".log-line.is-current")).to_have_text(re.compile(f"^line {GAP + 2} "))
    await page.keyboard.press("j")
    await expect(page.locator(".log-line.is-current")).to_have_text(re.compile(f"^line {GAP + 3} "))
    await page.keyboard.press("k")
    await expect(page.locator(".log-line.is-current")).to_have_text(re.compile(f"^line {GAP + 2} "))
    address = page.url
    assert f"at={place_of(GAP + 2)}" in address
    assert await tab.accessibility_problems() == []
    await page.goto("about:blank")
    await page.goto(address)
    await expect(page.locator(".log-line.is-current")).to_have_text(re.compile(f"^line {GAP + 2} "))


async def test_a_search_finds_lines_that_the_page_has_never_loaded(whole: tuple[Tab, str]) -> None:
    tab, uid = whole
    page = tab.page
    await tab.open(f"#/jobs/{uid}/logs?at=0&q=NEEDLE")
    await expect(page.get_by_text("1 line matches", exact=True).first).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.locator(".log-line.is-current mark")).to_have_text("needle")
    await until_shown(page, NEEDLE)
    await expect(page.get_by_text("1 of 1", exact=True).first).to_be_visible()


async def test_an_address_can_name_a_time(whole: tuple[Tab, str]) -> None:
    tab, uid = whole
    await tab.open(f"#/jobs/{uid}/logs?time=2026-01-02T01:00:00Z")
    await until_shown(tab.page, 3600)
    await expect(tab.page.locator(".log-line.is-current")).to_have_text(re.compile("^line 3600 "))
