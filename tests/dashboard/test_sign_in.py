"""Sign-in at an OIDC issuer with a code: from the dialog to the issuer and back to the view."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from tests.dashboard.browser import Tab, opened
from tests.dashboard.conftest import NAMESPACE
from tests.support.clusters.kube import Cluster
from tests.support.gateways.oidc_issuer import CLIENT, FakeIssuer, running_issuer
from tests.support.gateways.process import STEADY, gateway_process

pytestmark = pytest.mark.asyncio(loop_scope="session")

STORED = "JSON.stringify(Object.fromEntries(Object.entries(window.sessionStorage)))"


@dataclass(frozen=True, slots=True)
class IssuerSite:
    """A gateway whose users sign in at an issuer."""

    issuer: FakeIssuer
    url: str


@asynccontextmanager
async def site_of(
    issuer: FakeIssuer, cluster: Cluster, database_url: str, directory: Path
) -> AsyncIterator[IssuerSite]:
    issuer.user["groups"] = ["team"]
    environment = STEADY | {
        "JOBGATE_OPEN_ACCESS": "false",
        "JOBGATE_OIDC_ISSUER": issuer.url,
        "JOBGATE_OIDC_CLIENT_ID": CLIENT,
        "JOBGATE_OIDC_GRANTS": f"team=submitter:{NAMESPACE}",
    }
    async with gateway_process(database_url, cluster.kubeconfig, directory, **environment) as running:
        yield IssuerSite(issuer, await running.start())


@asynccontextmanager
async def visitor_of(browser: Browser, site: IssuerSite) -> AsyncIterator[Tab]:
    async with opened(browser, site.url, elsewhere=(f"{site.issuer.url}/authorize?",)) as tab:
        yield tab


@pytest_asyncio.fixture(loop_scope="session")
async def site(cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[IssuerSite]:
    async with running_issuer() as issuer, site_of(issuer, cluster, database_url, tmp_path) as site:
        yield site


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser, site: IssuerSite) -> AsyncIterator[Tab]:
    async with visitor_of(browser, site) as tab:
        yield tab


def dialog_of(tab: Tab) -> Locator:
    return tab.page.get_by_role("dialog", name="Sign in")


def sign_in_button(tab: Tab, site: IssuerSite) -> Locator:
    host = site.issuer.url.removeprefix("http://")
    return dialog_of(tab).get_by_role("button", name=f"Sign in with {host}")


async def press_sign_in(tab: Tab, site: IssuerSite) -> None:
    await sign_in_button(tab, site).click()


async def stored(tab: Tab) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await tab.page.evaluate(STORED))
    return found


async def test_a_user_signs_in_at_the_issuer_and_returns_to_the_view(visitor: Tab, site: IssuerSite) -> None:
    await visitor.open("#/jobs?phase=Failed&text=x")
    await expect(dialog_of(visitor).get_by_text("requires that you sign in")).to_be_visible()
    assert await visitor.accessibility_problems() == []
    await press_sign_in(visitor, site)
    await expect(visitor.page.get_by_role("button", name="Sign out")).to_be_visible()
    await expect(dialog_of(visitor)).to_have_count(0)
    # Neither the code nor the state stays in the address.
    await expect(visitor.page).to_have_url(f"{site.url}/#/jobs?phase=Failed&text=x")
    kept = await stored(visitor)
    assert set(kept) == {"jobgate.token", "jobgate.renewal"}
    await visitor.page.reload()
    await expect(visitor.page.get_by_role("button", name="Sign out")).to_be_visible()
    await visitor.page.get_by_role("button", name="Sign out").click()
    await expect(dialog_of(visitor)).to_be_visible()
    assert await stored(visitor) == {}


async def test_a_token_is_renewed_before_it_ends(visitor: Tab, site: IssuerSite) -> None:
    site.issuer.lifetime = 20  # shorter than the time before the end from which the page renews a token
    await visitor.open()
    await press_sign_in(visitor, site)
    await expect(visitor.page.get_by_role("button", name="Sign out")).to_be_visible()
    first = (await stored(visitor))["jobgate.token"]
    await expect(visitor.page.locator("[data-level=live]")).to_be_visible()
    await visitor.page.wait_for_function(
        "token => ![null, token].includes(sessionStorage.getItem('jobgate.token'))", arg=first
    )
    await expect(dialog_of(visitor)).to_have_count(0)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?code=stolen&state=other", "does not belong to a sign-in of this tab"),
        ("?error=access_denied&state=other", "does not belong to a sign-in of this tab"),
    ],
)
async def test_an_answer_that_the_tab_did_not_ask_for_is_refused(
    visitor: Tab, site: IssuerSite, query: str, message: str
) -> None:
    await visitor.page.goto(f"{site.url}/{query}")
    await expect(dialog_of(visitor).get_by_text(re.compile(message))).to_be_visible()
    await expect(visitor.page).to_have_url(f"{site.url}/")
    assert site.issuer.requests["/token"] == 0


async def test_the_sign_in_waits_until_the_gateway_has_reached_the_issuer(
    browser: Browser, cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    async with running_issuer() as issuer:
        issuer.replies["/.well-known/openid-configuration"] = (503, b"{}")
        async with site_of(issuer, cluster, database_url, tmp_path) as site, visitor_of(browser, site) as visitor:
            await visitor.open()
            await expect(dialog_of(visitor).get_by_text("has not reached the issuer")).to_be_visible()
            await expect(sign_in_button(visitor, site)).to_be_disabled()
            assert await visitor.accessibility_problems() == []
            issuer.replies.clear()
            await press_sign_in(visitor, site)
            await expect(visitor.page.get_by_role("button", name="Sign out")).to_be_visible()


async def test_a_false_answer_does_not_disturb_a_signed_in_user(visitor: Tab, site: IssuerSite) -> None:
    await visitor.open()
    await press_sign_in(visitor, site)
    await expect(visitor.page.get_by_role("button", name="Sign out")).to_be_visible()
    await visitor.page.goto(f"{site.url}/?code=stolen&state=other#/jobs")
    await expect(visitor.page.locator("[data-level=live]")).to_be_visible()
    await expect(dialog_of(visitor)).to_have_count(0)
    assert site.issuer.requests["/token"] == 1


async def test_a_user_without_a_grant_is_told_so(visitor: Tab, site: IssuerSite) -> None:
    site.issuer.user["groups"] = ["others"]
    await visitor.open()
    await press_sign_in(visitor, site)
    await expect(dialog_of(visitor).get_by_text("none of its groups has a grant")).to_be_visible()
    assert await stored(visitor) == {}
