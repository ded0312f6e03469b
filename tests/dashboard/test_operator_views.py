"""The views of the autoscaler and of the system."""

import re

import pytest
from playwright.async_api import Browser, expect

from tests.dashboard.browser import PHONE, WIDE, Tab, opened
from tests.dashboard.conftest import ClosedGateway

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_the_autoscaler_shows_load_and_decisions_and_dry_runs(tab: Tab) -> None:
    await tab.open("#/autoscaler")
    capacity = tab.page.get_by_role("table", name="Capacity and load of the cluster").first
    await expect(capacity.get_by_role("row").filter(has_text="CPU")).to_be_visible()
    await expect(tab.page.locator(".load-chart canvas")).to_be_visible()
    await tab.page.get_by_text("The chart as a table").click()
    figures = tab.page.get_by_role("table", name=re.compile("Load at each run"))
    await expect(figures.get_by_role("row").nth(1)).to_contain_text("97 %")
    load = tab.page.get_by_label("Maximum load in percent")
    await load.fill("50")
    await load.hover()
    for _ in range(5):
        await tab.page.mouse.wheel(0, 50)
    await tab.page.get_by_role("button", name="Dry-run").click()
    await expect(tab.page.get_by_text(re.compile("With a maximum load of 50 %"))).to_be_visible()


async def test_the_autoscaler_says_which_token_a_dry_run_needs(browser: Browser, closed_gateway: ClosedGateway) -> None:
    async with opened(browser, closed_gateway.url, token=closed_gateway.token) as tab:
        await tab.open("#/autoscaler")
        await expect(tab.page.get_by_text("it needs the token of an admin of all namespaces")).to_be_visible()
        await expect(tab.page.get_by_role("button", name="Dry-run")).to_be_disabled()
        await tab.open("#/system")
        await expect(tab.page.get_by_text("A submitter also submits")).to_be_visible()


async def test_the_system_says_what_works_and_which_kinds_are_accepted(tab: Tab) -> None:
    await tab.open("#/system")
    await expect(tab.page.get_by_text("Everything works.")).to_be_visible()
    for name, value in (("Controller", "Running"), ("Contact", "Connected"), ("Database", "accepts writes")):
        facts = tab.page.locator(".system-facts > div").filter(has=tab.page.get_by_text(name, exact=True))
        await expect(facts.get_by_text(value, exact=True)).to_be_visible()
    kinds = tab.page.get_by_role("table", name="The accepted kinds")
    await expect(kinds.get_by_role("row").filter(has_text="TrainingJob")).to_contain_text("/spec/trainer/max-instance")


async def test_the_views_are_accessible_in_both_schemes_and_on_a_phone(browser: Browser, tab: Tab) -> None:
    for size, dark in ((WIDE, False), (WIDE, True), (PHONE, False)):
        async with opened(browser, tab.url, size=size, dark=dark) as other:
            for fragment, shown in (("#/autoscaler", ".load-chart canvas"), ("#/system", ".system-facts >> nth=0")):
                await other.open(fragment)
                await expect(other.page.locator(shown)).to_be_visible()
                assert await other.accessibility_problems() == []
                width = await other.page.evaluate("document.documentElement.scrollWidth")
                assert width <= size[0], "the page scrolls sideways"
                current = other.page.get_by_role("navigation", name="Views").locator("[aria-current]")
                await expect(current).to_be_in_viewport(ratio=0.9, timeout=5000)
