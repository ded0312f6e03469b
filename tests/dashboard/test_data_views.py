"""The views of sample sets and sample jobs. The sets have no Secret, so they wait, and the page says for what."""

import re
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.dashboard.browser import PHONE, WIDE, Tab, opened
from tests.dashboard.sets import API, create, create_set
from tests.e2e.user import User

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def create_warm_up(user: User, name: str, sample_set: str) -> dict[str, Any]:
    return await create(user, "samplejobs", "SampleJob", name, {"type": "warmup", "sampleSetRef": {"name": sample_set}})


async def test_a_set_appears_says_what_it_waits_for_and_leaves_when_it_is_deleted(tab: Tab, user: User) -> None:
    await tab.open("#/data")
    await create_set(user, "appears")
    row = tab.page.get_by_role("row").filter(has=tab.page.get_by_role("link", name="appears", exact=True))
    await expect(row.get_by_text("ErrorSecretNotExist")).to_be_visible()
    await expect(row.get_by_text("0 of 2 ready")).to_be_visible()
    await user.http.delete(f"{API}/samplesets/appears")
    await expect(row).to_have_count(0)


async def test_a_set_shows_what_uses_it_and_what_happened(tab: Tab, user: User) -> None:
    created = await create_set(user, "shown")
    await tab.open(f"#/data/{created['uid']}")
    await expect(tab.page.get_by_role("heading", name="shown")).to_be_visible()
    await expect(tab.page.get_by_role("table", name="Conditions").get_by_text("ErrorSecretNotExist")).to_be_visible()
    await expect(tab.page.get_by_role("table", name=re.compile("History")).get_by_text("jobgate")).to_be_visible()
    await expect(tab.page.get_by_text("No sample job concerns this set.")).to_be_visible()
    await create_warm_up(user, "shown-warm-up", "shown")
    await tab.page.get_by_role("link", name="shown-warm-up").click()
    dialog = tab.page.get_by_role("dialog", name="Sample job shown-warm-up")
    await expect(dialog.get_by_text("warmup of the sample set default/shown")).to_be_visible()
    spec = {"type": "clear", "sampleSetRef": {"name": "shown"}, "secretRef": {"name": "unused"}}
    warned = await create(user, "samplejobs", "SampleJob", "shown-warned", spec)
    await tab.open(f"#/data?show=jobs&open={warned['uid']}")
    await expect(tab.page.get_by_role("region", name="1 warning")).to_contain_text("(jobgate, /spec/secretRef)")


async def test_a_deletion_states_its_consequences_and_concerns_the_version_that_was_shown(tab: Tab, user: User) -> None:
    created = await create_set(user, "deleted")
    await tab.open(f"#/data/{created['uid']}")
    # The status is at rest then. Otherwise it could change after the click, and the deletion would be refused.
    await expect(tab.page.get_by_role("table", name="Conditions").get_by_text("ErrorSecretNotExist")).to_be_visible()
    await tab.page.get_by_role("button", name="Delete").click()
    dialog = tab.page.get_by_role("alertdialog", name="Delete the sample set deleted?")
    await expect(dialog.get_by_text("The data remains in the storage")).to_be_visible()
    async with tab.page.expect_request(lambda request: request.method == "DELETE") as request:
        await dialog.get_by_role("button", name="Delete the sample set deleted").click()
    assert (await request.value).headers["if-match"].startswith('"')
    await expect(dialog).to_have_count(0)
    await expect(tab.page.get_by_text("nothing is left in the cluster")).to_be_visible()


async def test_sample_jobs_are_filtered_by_their_set(tab: Tab, user: User) -> None:
    for name in ("filtered", "other"):
        await create_warm_up(user, f"{name}-warm-up", name)
    await tab.open("#/data?show=jobs")
    await expect(tab.page.get_by_role("link", name="other-warm-up")).to_be_visible()
    await tab.page.get_by_label("Sample set", exact=True).fill("filtered")
    await tab.page.keyboard.press("Enter")
    await expect(tab.page.get_by_role("link", name="other-warm-up")).to_have_count(0)
    await tab.page.get_by_role("link", name="filtered-warm-up").click()
    await expect(tab.page.get_by_role("dialog", name="Sample job filtered-warm-up")).to_be_visible()
    await tab.page.get_by_role("button", name="Close").click()
    await expect(tab.page).to_have_url(re.compile(r"#/data\?show=jobs&set=filtered$"))


async def test_the_views_are_accessible_in_both_schemes_and_on_a_phone(browser: Browser, tab: Tab, user: User) -> None:
    created = await create_set(user, "accessible")
    job = await create_warm_up(user, "accessible-warm-up", "accessible")
    for size, dark in ((WIDE, False), (WIDE, True), (PHONE, False)):
        async with opened(browser, tab.url, size=size, dark=dark) as other:
            for fragment in ("#/data", f"#/data/{created['uid']}", f"#/data?show=jobs&open={job['uid']}"):
                await other.open(fragment)
                await expect(other.page.get_by_text(re.compile("accessible")).first).to_be_visible()
                assert await other.accessibility_problems() == []
                width = await other.page.evaluate("document.documentElement.scrollWidth")
                assert width <= size[0], "the page scrolls sideways"
