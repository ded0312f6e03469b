"""The table with 20 000 jobs, and on a slow network."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from tests.dashboard.browser import Tab, opened
from tests.support.clusters.kube import Cluster
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

JOBS = 20_000
FILL = """
INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by, phase, reason, message,
                  quiet, finished_at)
SELECT md5(n::text)::uuid, 'default', 'job-' || to_char(n, 'FM00000'), 'GenericJob', 'v1', '{}',
       now() - n * interval '1 second', 'me', CASE WHEN n % 100 = 0 THEN 'Failed' ELSE 'Succeeded' END, '', '', true,
       now()
FROM generate_series(1, $1::integer) AS n
"""
# Latency in milliseconds and bytes per second of a bad mobile connection.
SLOW = {"offline": False, "latency": 800, "downloadThroughput": 100_000, "uploadThroughput": 50_000}


@pytest_asyncio.fixture(loop_scope="session")
async def crowded(cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[str]:
    """The address of a gateway with many ended jobs."""
    connection = await asyncpg.connect(database_url, timeout=60)
    await connection.execute(FILL, JOBS)
    await connection.execute("ANALYZE jobs")
    await connection.close()
    async with gateway_process(database_url, cluster.kubeconfig, tmp_path, **STEADY) as running:
        yield await running.start()


async def test_the_last_of_many_jobs_is_reached_and_few_rows_are_drawn(browser: Browser, crowded: str) -> None:
    async with opened(browser, crowded) as tab:
        await tab.open()
        await expect(tab.page.get_by_role("link", name="job-00001", exact=True)).to_be_visible()
        counts = tab.page.get_by_role("group", name="Phase")
        await expect(counts.get_by_role("button", name=re.compile(r"^Failed\s*200$"))).to_be_visible()
        last = tab.page.get_by_role("link", name=f"job-{JOBS}", exact=True)
        await until(lambda: is_shown_at_the_end(tab, last), what="the last job is shown", within=280, every=0.05)
        await expect(tab.page.get_by_role("table", name="Jobs")).to_have_attribute("aria-rowcount", str(JOBS + 1))
        assert await tab.page.get_by_role("row").count() < 100
        await tab.page.keyboard.press("j")
        await expect(tab.page.get_by_role("link", name="job-00001", exact=True)).to_be_visible()


async def is_shown_at_the_end(tab: Tab, last: Locator) -> bool:
    """Scroll to the end of the loaded rows, which loads more of them."""
    await tab.page.evaluate("document.querySelector('.table-scroller').scrollTop = 1e9")
    return await last.is_visible()


async def test_a_slow_network_delays_and_loses_nothing(browser: Browser, crowded: str) -> None:
    async with opened(browser, crowded) as tab:
        session = await tab.page.context.new_cdp_session(tab.page)
        await session.send("Network.emulateNetworkConditions", SLOW)
        await tab.open()
        await expect(tab.page.get_by_role("link", name="job-00001", exact=True)).to_be_visible()
        # Typing faster than the network answers: only the last search counts.
        search = tab.page.get_by_role("searchbox")
        await search.press_sequentially("job-0012", delay=400)
        await expect(tab.page.get_by_role("link", name="job-00120", exact=True)).to_be_visible()
        await expect(tab.page.get_by_role("table", name="Jobs")).to_have_attribute("aria-rowcount", "11")


async def test_an_order_of_too_many_jobs_says_which_it_sorts(browser: Browser, crowded: str) -> None:
    async with opened(browser, crowded) as tab:
        await tab.open("#/jobs?sort=-name")
        notice = tab.page.get_by_text(re.compile("^Sorted are the newest 5.\\d{3} jobs, not all"))
        await expect(notice).to_be_visible()
        await tab.open("#/jobs?phase=Failed&sort=-name")
        await expect(tab.page.get_by_role("link", name="job-20000", exact=True)).to_be_visible()
        await expect(notice).to_have_count(0)
