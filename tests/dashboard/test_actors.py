"""Whoever caused something is shown with an identity, because several actors may have one name."""

import pytest
from playwright.async_api import Browser, expect

from tests.dashboard.browser import PHONE, opened
from tests.dashboard.conftest import NAMESPACE, ClosedGateway
from tests.dashboard.sets import create, create_set
from tests.dashboard.test_parts import scalable
from tests.e2e.user import User
from tests.support.gateways.bearer import bearer

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize("size", [(1280, 800), PHONE])
async def test_actors_of_one_name_differ_wherever_they_are_shown(
    browser: Browser, closed_gateway: ClosedGateway, size: tuple[int, int]
) -> None:
    user = closed_gateway.user
    created = await user.submit(scalable(f"acted-{size[0]}", "sleep 600"))
    scaler = User(user.http, NAMESPACE, await bearer(closed_gateway.database_url, "admin", NAMESPACE))
    await scaler.call("POST", f"/{created['name']}/scale", 202, json={"tasks": {"collector": 3}})
    sample_set = await create_set(user, f"acted-{size[0]}")
    spec = {"type": "clear", "sampleSetRef": {"name": sample_set["name"]}}
    sample_job = await create(user, "samplejobs", "SampleJob", f"acted-job-{size[0]}", spec)
    owner = created["createdById"]
    whoami = await user.http.get("/api/v1/whoami", headers=scaler.headers)
    other = whoami.json()["actorId"]
    assert owner.startswith("token:")
    assert other.startswith("token:")
    assert owner != other
    async with opened(browser, closed_gateway.url, size=size, token=closed_gateway.token) as tab:
        page = tab.page
        main = page.get_by_role("main")
        await tab.open(f"#/jobs?text={created['name']}")
        if size != PHONE:  # a card has no room for the owner
            await expect(page.locator(".table-row .column-owner").last).to_contain_text(f"a submitter {owner}")
        await tab.open(f"#/jobs/{created['uid']}")
        await expect(main.locator("dd").filter(has_text="a submitter")).to_have_text(f"a submitter {owner}")
        await expect(page.get_by_role("list", name="Changes of the job")).to_contain_text(f"a admin ({other}) scaled")
        await tab.open(f"#/jobs/{created['uid']}/scaling")
        await expect(page.get_by_role("table", name="Scale records")).to_contain_text(f"a admin {other}")
        await tab.open(f"#/jobs/{created['uid']}/history")
        history = page.get_by_role("table", name="History")
        for text in (f"a submitter {owner}", f"a admin {other}", "jobgate controller"):
            await expect(history).to_contain_text(text)
        await tab.open(f"#/data/{sample_set['uid']}")
        await expect(main).to_contain_text(f"by a submitter ({owner})")
        await expect(page.get_by_role("table", name="History")).to_contain_text(f"a submitter {owner}")
        await tab.open(f"#/data?show=jobs&open={sample_job['uid']}")
        await expect(page.get_by_role("dialog").get_by_role("table", name="History")).to_contain_text(owner)
        await expect(page.get_by_role("dialog")).to_contain_text(f"by a submitter ({owner})")
        await tab.open("#/system")
        await expect(page.get_by_role("region", name="You")).to_contain_text(owner)
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width <= size[0], "the page scrolls sideways"
