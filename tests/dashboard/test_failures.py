"""What the page does when the gateway, the network or the token fails, and with hostile content."""

import pytest
from playwright.async_api import Browser, expect

from tests.dashboard.browser import Tab, opened
from tests.dashboard.conftest import ClosedGateway
from tests.e2e.user import User, job
from tests.support.gateways.bearer import bearer, revoke_all
from tests.support.gateways.process import GatewayProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = "<img src=x onerror=alert(1)>\"'</script><script>alert(2)</script>"


async def test_the_page_keeps_its_data_while_the_gateway_is_away_and_then_goes_on(
    tab: Tab, gateway: GatewayProcess, user: User
) -> None:
    await user.submit(job("stays", "exit 0"))
    await user.ended("stays")
    await tab.open("#/jobs?text=stays")
    link = tab.page.get_by_role("link", name="stays", exact=True)
    await expect(link).to_be_visible()
    await gateway.kill()
    try:
        await expect(tab.page.locator("[data-level=offline]")).to_be_visible()
        await expect(link).to_be_visible()
    finally:
        await gateway.start()
    await expect(tab.page.locator("[data-level=live]")).to_be_visible()
    await user.submit(job("stays-too", "exit 0"))
    await expect(tab.page.get_by_role("link", name="stays-too", exact=True)).to_be_visible()


async def test_every_text_of_a_job_is_shown_as_text(tab: Tab, user: User) -> None:
    dialogs: list[str] = []
    tab.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    manifest = job("hostile", f"cat <<'END'\n{HOSTILE}\nEND\nexit 7", restart={"policy": "Never"})
    manifest["metadata"]["annotations"] = {"note": HOSTILE}
    manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["env"] = [{"name": "X", "value": HOSTILE}]
    created = await user.submit(manifest)
    await user.ended("hostile")
    for fragment in ("#/jobs?text=hostile", *(f"#/jobs/{created['uid']}{tab_of}" for tab_of in TABS)):
        await tab.open(fragment)
        await expect(tab.page.get_by_text("hostile").first).to_be_visible()
    await expect(tab.page.get_by_text("<img src=x").first).to_be_visible()
    assert dialogs == []


# The last one is the manifest, which contains the texts.
TABS = ("", "/replicas", "/logs", "/history", "/events", "/scaling", "/manifest")


async def test_a_gateway_that_requires_tokens_asks_for_one(browser: Browser, closed_gateway: ClosedGateway) -> None:
    await closed_gateway.user.submit(job("secret", "exit 0"))
    await closed_gateway.user.ended("secret")
    async with opened(browser, closed_gateway.url) as tab:
        await tab.open()
        dialog = tab.page.get_by_role("dialog", name="Sign in")
        await expect(dialog.get_by_text("requires a token")).to_be_visible()
        assert await tab.accessibility_problems() == []
        await sign_in(tab, "jg_wrong")
        await expect(dialog.get_by_text("does not accept the token")).to_be_visible()
        await sign_in(tab, closed_gateway.token)
        await expect(tab.page.get_by_role("link", name="secret", exact=True)).to_be_visible()
        await expect(dialog).to_have_count(0)
        await tab.page.get_by_role("button", name="Sign out").click()
        await expect(dialog.get_by_text("requires a token")).to_be_visible()
        await expect(tab.page.get_by_text("secret", exact=True)).to_have_count(0)


async def test_the_page_keeps_its_data_when_the_token_is_revoked(
    browser: Browser, closed_gateway: ClosedGateway
) -> None:
    await closed_gateway.user.submit(job("kept", "exit 0"))
    await closed_gateway.user.ended("kept")
    async with opened(browser, closed_gateway.url, token=closed_gateway.token) as tab:
        await tab.open()
        await expect(tab.page.get_by_role("link", name="kept", exact=True)).to_be_visible()
        await revoke_all(closed_gateway.database_url)
        await expect(tab.page.get_by_role("dialog", name="Sign in")).to_be_visible()
        # The dialog hides the rest of the page from assistive technology, but not from the eyes.
        await expect(tab.page.get_by_text("kept", exact=True)).to_be_visible()
        # Another token may reach other namespaces, so the list begins again.
        headers = await bearer(closed_gateway.database_url, "viewer", "elsewhere")
        await sign_in(tab, headers["Authorization"].removeprefix("Bearer "))
        await expect(tab.page.get_by_text("No job has been submitted yet.")).to_be_visible()
        await expect(tab.page.locator("[data-level=live]")).to_be_visible()


async def sign_in(tab: Tab, token: str) -> None:
    dialog = tab.page.get_by_role("dialog", name="Sign in")
    await dialog.get_by_label("Token").fill(token)
    await dialog.get_by_role("button", name="Sign in").click()
