"""Every view after the demo has played; with `--screenshots DIRECTORY`, also the screenshots of docs/dashboard.md."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from app.demo import player, run
from tests.dashboard.browser import PHONE, WIDE, opened
from tests.dashboard.sets import create_set
from tests.e2e.user import User
from tests.support.gateways.process import GatewayProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")

# For each screenshot: the fragment, in which {name} is the uid of that job, and a text that the ready view shows.
VIEWS = {
    "jobs": ("#/jobs", "parameter-server"),
    "jobs-phone": ("#/jobs", "parameter-server"),
    "jobs-dark": ("#/jobs?phase=Failed&phase=Succeeded", "failing"),
    "job-failed": ("#/jobs/{failing}", "The last lines of its log"),
    "job-scaled": ("#/jobs/{parameter-server}", "trainer[2]"),
    "job-phone": ("#/jobs/{failing}", "The last lines of its log"),
    "replicas": ("#/jobs/{kvstore}/replicas", "server[0]"),
    "logs": ("#/jobs/{kvstore}/logs", "step 100"),
    "history": ("#/jobs/{pausable}/history", "Paused"),
    "events": ("#/jobs/{flaky}/events", "Event"),
    "scaling": ("#/jobs/{parameter-server}/scaling", "Reached"),
    "manifest": ("#/jobs/{kvstore}/manifest", "mxReplicaType"),
    "submit": ("#/submit", "There is no manifest yet."),
    "data": ("#/data", "imagenet"),
    "usage": ("#/usage?resource=pods&days=7&by=kind", "TrainingJob"),
    "autoscaler": ("#/autoscaler", "CPU"),
    "system": ("#/system", "Everything works."),
}


async def test_every_view_shows_the_examples_of_the_demo(
    browser: Browser,
    gateway: GatewayProcess,
    user: User,
    screenshots: Path | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(player, "LONGEST", 240.0)  # the tests share the cores of the machine
    assert await run.play_against(gateway.url, None, asyncio.Event()) == 0
    listed = (await user.read("?view=summary&pageSize=500"))["items"]
    await create_set(user, "imagenet")
    uids = {each["name"]: each["uid"] for each in listed}
    for name, (fragment, shown) in VIEWS.items():
        size = PHONE if name.endswith("-phone") else WIDE
        async with opened(browser, gateway.url, size=size, dark=name.endswith("-dark")) as tab:
            await tab.open(fragment.format_map(uids))
            await expect(tab.page.get_by_text(shown).first).to_be_visible()
            if name == "submit":
                await tab.page.get_by_label("Start from").select_option(label="flaky")
                await expect(tab.page.get_by_text("The gateway accepts it.")).to_be_visible()
            assert await tab.accessibility_problems() == [], name
            if screenshots is not None:
                await tab.page.screenshot(path=screenshots / f"{name}.png")
