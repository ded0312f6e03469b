"""Every kind of control can be read in each of its states, in both modes."""

import re

import pytest
from playwright.async_api import Browser, expect

from tests.dashboard.browser import Tab, opened
from tests.dashboard.contrast import invisible_states, kinds_of_controls
from tests.dashboard.sets import create_set
from tests.e2e.user import User, job

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Each view, and the button that opens its dialog.
VIEWS = {
    "#/jobs?phase=Succeeded&text=contrast": None,
    "#/jobs/{job}": "Retry",
    "#/jobs/{live}": "Cancel",
    "#/jobs/{job}/replicas": None,
    "#/jobs/{job}/logs?q=line": None,
    "#/jobs/{job}/manifest": None,
    "#/submit": None,
    "#/data": None,
    "#/data/{set}": "Delete",
    "#/queues": None,
    "#/usage": None,
    "#/autoscaler": None,
    "#/system": None,
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_control_can_be_read_in_each_state(browser: Browser, tab: Tab, user: User, scheme: str) -> None:
    ended = await user.submit(job(f"contrast-{scheme}", "echo a line; exit 0"))
    live = await user.submit(job(f"contrast-live-{scheme}", "sleep 600"))
    await user.ended(f"contrast-{scheme}")
    uids = {"job": ended["uid"], "live": live["uid"], "set": (await create_set(user, f"contrast-{scheme}"))["uid"]}
    invisible, seen = [], set()
    async with opened(browser, tab.url, dark=scheme == "dark") as other:
        for view, dialog in VIEWS.items():
            await other.open(view.format(**uids))
            await expect(other.page.get_by_role("main").get_by_text("Loading")).to_have_count(0)
            if dialog is not None:
                await other.page.get_by_role("button", name=dialog, exact=True).click()
                await expect(other.page.locator(".dialog-buttons")).to_be_visible()
            for kind, control in (await kinds_of_controls(other.page)).items():
                if kind not in seen and await control.evaluate("element => element.isConnected"):
                    seen.add(kind)
                    invisible += await invisible_states(other.page, f"{view} {kind}", control)
    await user.call("POST", f"/contrast-live-{scheme}/cancel", 202)
    assert {"primary", "danger", "chip"} <= {name for kind in seen for name in re.findall(r"[\w-]+", kind)}
    assert invisible == []
