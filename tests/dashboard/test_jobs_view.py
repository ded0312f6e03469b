"""The table of jobs: it follows jobs as they change, and its filters are chips and the address."""

import re

import pytest
from playwright.async_api import expect

from tests.dashboard.browser import PHONE, Tab, opened
from tests.e2e.user import User, job

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_job_appears_and_follows_its_phases_without_a_reload(tab: Tab, user: User) -> None:
    await tab.open()
    await expect(tab.page.get_by_text("Live")).to_be_visible()
    await user.submit(job("appears", "exit 0"))
    row = tab.page.get_by_role("row").filter(has=tab.page.get_by_role("link", name="appears", exact=True))
    await expect(row).to_be_visible()
    await expect(row.get_by_text("Succeeded", exact=True)).to_be_visible()
    await expect(row.get_by_role("img", name="1 succeeded")).to_be_visible()


async def test_filters_are_chips_and_the_address(tab: Tab, user: User) -> None:
    for name, script in (("filter-fails", "exit 3"), ("filter-succeeds", "exit 0")):
        await user.submit(job(name, script))
        await user.ended(name)
    fails = tab.page.get_by_role("link", name="filter-fails", exact=True)
    succeeds = tab.page.get_by_role("link", name="filter-succeeds", exact=True)
    await tab.open("#/jobs?text=filter-")
    await expect(succeeds).to_be_visible()
    await tab.page.get_by_role("group", name="Phase").get_by_role("button", name=re.compile("^Failed")).click()
    await expect(succeeds).to_have_count(0)
    await expect(fails).to_be_visible()
    await expect(tab.page).to_have_url(re.compile(r"#/jobs\?phase=Failed&text=filter-$"))
    await tab.page.reload()
    await expect(fails).to_be_visible()
    await expect(succeeds).to_have_count(0)
    await tab.page.get_by_role("button", name="Clear", exact=True).click()
    await expect(succeeds).to_be_visible()
    await expect(tab.page).to_have_url(re.compile("#/jobs$"))


async def test_counts_by_phase_are_those_of_the_list(tab: Tab, user: User) -> None:
    for number in range(3):
        await user.submit(job(f"counted-{number}", "exit 0"))
        await user.ended(f"counted-{number}")
    await tab.open("#/jobs?text=counted-")
    phases = tab.page.get_by_role("group", name="Phase")
    await expect(phases.get_by_role("button", name=re.compile(r"^Succeeded\s*3$"))).to_be_visible()
    await expect(phases.get_by_role("button", name=re.compile("^Failed"))).to_have_count(0)


async def test_the_keyboard_moves_opens_and_searches(tab: Tab, user: User) -> None:
    for name in ("keys-first", "keys-second"):
        await user.submit(job(name, "exit 0"))
        await user.ended(name)
    await tab.open("#/jobs?text=keys-")
    rows = tab.page.get_by_role("row").filter(has=tab.page.get_by_role("link"))
    await expect(rows).to_have_count(2)
    for key, expected in (("j", 0), ("j", 1), ("k", 0)):
        await tab.page.keyboard.press(key)
        await expect(rows.nth(expected)).to_have_attribute("aria-current", "true")
    await tab.page.keyboard.press("/")
    await expect(tab.page.get_by_role("searchbox")).to_be_focused()
    await tab.page.keyboard.type("j")
    await expect(tab.page.get_by_role("searchbox")).to_have_value("keys-j")
    await tab.page.get_by_role("searchbox").clear()
    await tab.page.get_by_role("searchbox").blur()
    await tab.page.keyboard.press("?")
    await expect(tab.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


async def test_rows_in_view_and_the_focus_stay_when_jobs_arrive_above(tab: Tab, user: User) -> None:
    for number in range(8):
        await user.submit(job(f"place-{number}", "exit 0"))
        await user.ended(f"place-{number}")
    await tab.page.set_viewport_size({"width": 1280, "height": 420})
    await tab.open("#/jobs?text=place-")
    oldest = tab.page.get_by_role("link", name="place-0", exact=True)
    await oldest.focus()
    await tab.page.locator(".table-scroller").evaluate("scroller => { scroller.scrollTop = 100; }")
    for _ in range(2):
        await tab.page.keyboard.press("j")
    await tab.page.locator(".table-scroller").evaluate("scroller => { scroller.scrollTop = 100; }")
    row = tab.page.get_by_role("row").filter(has=tab.page.get_by_role("link", name="place-4", exact=True))
    before = await row.bounding_box()
    await user.submit(job("place-new", "exit 0"))
    jump = tab.page.get_by_role("button", name="1 new")
    await expect(jump).to_be_visible()
    assert await row.bounding_box() == before
    await expect(oldest).to_be_focused()
    await expect(tab.page.locator("[aria-current=true][role=row]")).to_contain_text("place-6")
    await jump.click()
    await expect(tab.page.get_by_role("link", name="place-new", exact=True)).to_be_in_viewport()
    await expect(jump).to_have_count(0)


async def test_a_row_far_from_those_in_view_keeps_the_focus_when_a_job_arrives(tab: Tab, user: User) -> None:
    # Some rows before and after those in view are drawn too.
    for number in range(26):
        await user.submit(job(f"far-{number}", "exit 0"))
    await tab.page.set_viewport_size({"width": 1280, "height": 420})
    await tab.open("#/jobs?text=far-")
    newest = tab.page.get_by_role("link", name="far-25", exact=True)
    await newest.focus()
    await tab.page.locator(".table-scroller").evaluate("scroller => { scroller.scrollTop = scroller.scrollHeight; }")
    await expect(tab.page.get_by_role("link", name="far-24", exact=True)).to_have_count(0)
    await user.submit(job("far-new", "exit 0"))
    await expect(tab.page.get_by_role("button", name="1 new")).to_be_visible()
    await expect(newest).to_be_focused()


async def test_the_table_is_accessible_in_both_schemes_and_on_a_phone(tab: Tab, user: User) -> None:
    await user.submit(job("accessible", "exit 1"))
    await user.ended("accessible")
    browser = tab.page.context.browser
    assert browser is not None
    for size, dark in (((1280, 800), False), ((1280, 800), True), (PHONE, False)):
        async with opened(browser, tab.url, size=size, dark=dark) as other:
            await other.open()
            await expect(other.page.get_by_role("link", name="accessible", exact=True)).to_be_visible()
            assert await other.accessibility_problems() == []
            width = await other.page.evaluate("document.documentElement.scrollWidth")
            assert width <= size[0], "the page scrolls sideways"
