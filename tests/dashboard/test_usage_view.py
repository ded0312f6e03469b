"""The page of usage: a chart over time, sums by namespace and user, and their download."""

import csv
import io
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.dashboard.browser import PHONE, WIDE, Tab, opened
from tests.e2e.user import User, job
from tests.support.clusters.kube import Cluster, connect

# The shown titles of cells that cannot have several lines. On a phone, each cell shows its title beside its value.
UNBROKEN_TITLES = """[...document.querySelectorAll(".data-table td")]
    .map((cell) => [cell.dataset.title, getComputedStyle(cell, "::before")])
    .filter(([_, style]) => style.content !== "none" && style.whiteSpace === "nowrap")
    .map(([title]) => title)"""

# The usage of the jobs of other tests stays, so this test has a namespace of its own.
NAMESPACE = "billed"

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def billed(user: User, cluster: Cluster) -> User:
    """A user of the namespace."""
    async with connect(cluster) as kube:
        await kube.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await kube.eventually(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default", bool)
    return User(user.http, NAMESPACE, user.headers)


async def test_the_page_shows_what_jobs_have_used(browser: Browser, tab: Tab, billed: User) -> None:
    manifest = job("used", "sleep 1; exit 1")
    container = manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "250m", "memory": "64Mi"}}
    await billed.submit(manifest)
    await billed.ended("used")

    await tab.open("#/usage?resource=cpu&days=7")
    chart = tab.page.get_by_role("img", name="Chart of core hours by day")
    await expect(chart).to_be_visible()
    await expect(chart.locator(".bucket-failed")).to_have_count(1)
    table = tab.page.get_by_role("table", name="Usage by namespace")
    await expect(table.get_by_role("row").filter(has_text=NAMESPACE)).to_contain_text("100 %")
    await tab.page.get_by_role("combobox", name="Resource").select_option("memory")
    await expect(tab.page.get_by_text("In GiB hours of memory")).to_be_visible()
    await tab.page.get_by_role("combobox", name="By").select_option("user")
    await expect(tab.page.get_by_role("table", name="Usage by user")).to_be_visible()
    assert tab.page.url.endswith("#/usage?by=user&days=7&resource=memory")
    async with tab.page.expect_download() as downloading:
        await tab.page.get_by_role("button", name="Download CSV").click()
    download = await downloading.value
    assert download.suggested_filename.startswith("usage-user-")
    lines = list(csv.DictReader(io.StringIO(Path(await download.path()).read_text(encoding="utf-8"))))
    assert any(line["resource"] == "cpu" and float(line["repeated_seconds"]) > 0 for line in lines)

    for size, dark in ((WIDE, False), (WIDE, True), (PHONE, False)):
        async with opened(browser, tab.url, size=size, dark=dark) as other:
            await other.open("#/usage?resource=cpu")
            await expect(other.page.get_by_role("table", name="Usage by namespace")).to_be_visible()
            assert await other.accessibility_problems() == []
            assert await other.page.evaluate("document.documentElement.scrollWidth") <= size[0]
            assert await other.page.evaluate(UNBROKEN_TITLES) == [], "a title runs into the value beside it"
