"""What the page offers to a token: what the gateway would refuse is disabled, with the reason."""

import pytest
from playwright.async_api import Browser, expect

from tests.dashboard.browser import opened
from tests.dashboard.conftest import NAMESPACE, ClosedGateway
from tests.dashboard.sets import create, create_set
from tests.e2e.user import job
from tests.support.gateways.bearer import bearer

pytestmark = pytest.mark.asyncio(loop_scope="session")

ACTIONS = ("Scale", "Pause", "Resume", "Cancel", "Retry", "Delete")
READS = f"Your token may only read in the namespace {NAMESPACE}."
VIEWS = (
    "#/jobs",
    "#/submit",
    "#/data",
    "#/queues",
    "#/usage",
    "#/autoscaler",
    "#/system",
    "#/jobs/11111111-1111-4111-8111-111111111111",
)


async def token_of(gateway: ClosedGateway, role: str, *namespaces: str) -> str:
    return (await bearer(gateway.database_url, role, *namespaces))["Authorization"].removeprefix("Bearer ")


async def test_a_viewer_can_change_nothing(browser: Browser, closed_gateway: ClosedGateway) -> None:
    user = closed_gateway.user
    created = await user.submit(job("viewed", "sleep 600"))
    sample_set = await create_set(user, "viewed")
    spec = {"type": "clear", "sampleSetRef": {"name": "viewed"}}
    await create(user, "samplejobs", "SampleJob", "viewed-job", spec)
    async with opened(browser, closed_gateway.url, token=await token_of(closed_gateway, "viewer", NAMESPACE)) as tab:
        await tab.open(f"#/jobs/{created['uid']}")
        for action in ACTIONS:
            button = tab.page.get_by_role("button", name=action, exact=True)
            await expect(button).to_have_attribute("aria-disabled", "true")
            await expect(button).to_have_accessible_description(READS)
        assert await tab.accessibility_problems() == []
        await tab.open("#/jobs?text=viewed")
        await tab.page.get_by_role("checkbox", name="Select viewed").check()
        selected = tab.page.get_by_role("region", name="Selected jobs")
        for action in ("Cancel", "Retry", "Delete"):
            await expect(selected.get_by_role("button", name=action)).to_have_attribute("aria-disabled", "true")
            await expect(selected.get_by_role("button", name=action)).to_have_accessible_description(READS)
            await selected.get_by_role("button", name=action).press("Enter")
        await expect(tab.page.get_by_role("dialog")).to_have_count(0)
        await tab.open(f"#/data/{sample_set['uid']}")
        await expect(tab.page.get_by_role("button", name="Delete", exact=True)).to_have_attribute(
            "aria-disabled", "true"
        )
        await tab.page.get_by_role("link", name="viewed-job").click()
        delete = tab.page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True)
        await expect(delete).to_have_attribute("aria-disabled", "true")
        await tab.open("#/submit")
        await tab.page.get_by_label("Start from").select_option(label="flaky")
        await expect(tab.page.get_by_text(READS)).to_be_visible()
        for name in ("Preview", "Submit"):
            await expect(tab.page.get_by_role("button", name=name, exact=True)).to_be_disabled()
        await expect(tab.page.get_by_role("alert")).to_have_count(0)


async def test_a_viewer_sees_the_example_and_why_it_may_not_submit_it(
    browser: Browser, closed_gateway: ClosedGateway
) -> None:
    async with opened(browser, closed_gateway.url, token=await token_of(closed_gateway, "viewer", NAMESPACE)) as tab:
        await tab.open()
        submit = tab.page.get_by_role("button", name="Submit the example")
        await expect(submit).to_have_attribute("aria-disabled", "true")
        await expect(submit).to_have_accessible_description(READS)


async def test_a_submitter_of_one_namespace_changes_jobs_there(browser: Browser, closed_gateway: ClosedGateway) -> None:
    created = await closed_gateway.user.submit(job("changed", "sleep 600"))
    async with opened(browser, closed_gateway.url, token=closed_gateway.token) as tab:
        await tab.open(f"#/jobs/{created['uid']}")
        await expect(tab.page.get_by_role("button", name="Cancel", exact=True)).to_have_attribute(
            "aria-disabled", "false"
        )
        await tab.open("#/submit")
        await tab.page.get_by_label("Namespace").fill("elsewhere")
        await expect(tab.page.get_by_text("Your token may only read in the namespace elsewhere.")).to_be_visible()


@pytest.mark.parametrize("view", VIEWS)
async def test_the_first_visit_asks_for_a_sign_in_and_shows_no_error(
    browser: Browser, closed_gateway: ClosedGateway, view: str
) -> None:
    async with opened(browser, closed_gateway.url) as tab:
        await tab.open(view)
        await expect(tab.page.get_by_role("dialog", name="Sign in")).to_be_visible()
        await expect(tab.page.locator("main .note")).to_have_count(0)
        await expect(tab.page.get_by_text("Sign in to see this.").or_(tab.page.locator("h1")).first).to_be_visible()
        await expect(tab.page.locator("[data-level=live]")).to_have_count(1)
