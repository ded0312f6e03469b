"""The log of a job that writes many lines: few are drawn, the last ones are kept, and the others are announced."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.dashboard.browser import Tab
from tests.dashboard.logs import lines_in_view
from tests.e2e.user import User, job
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEPT = 100_000
LAST = 100_500
# Lines arrive while the page follows the log, and end when the pod gets its signal.
FLOOD = f"seq -f 'line %.0f' 1 {LAST}"
STEADY = (
    "trap 'echo the last line; exit 0' TERM; seq -f 'line %.0f' 1 500; i=500; "
    "while :; do seq -f 'line %.0f' $((i + 1)) $((i + 100)); i=$((i + 100)); sleep 0.05; done"
)

# The browser scrolls smoothly, in many frames.
AT_REST = """log => new Promise(resolve => {
  let top = -1, frames = 0;
  const look = () => {
    frames = log.scrollTop === top ? frames + 1 : 0;
    top = log.scrollTop;
    if (frames === 10) resolve(); else requestAnimationFrame(look);
  };
  look();
})"""


async def drawn(page: Page) -> int:
    return await page.locator(".log-line").count()


async def test_of_many_lines_few_are_drawn_the_last_are_kept_and_the_others_announced(tab: Tab, user: User) -> None:
    created = await user.submit(job("logs-many", FLOOD))
    await user.ended("logs-many")
    await tab.open(f"#/jobs/{created['uid']}/logs?q=line+100400")
    page = tab.page
    await expect(page.get_by_text(f"line {LAST}", exact=True)).to_be_visible()
    await expect(page.get_by_text(re.compile(r"^100.000 lines$"))).to_be_visible()
    await expect(page.get_by_text(re.compile(r"^The page keeps the last 100.000 lines.* dropped"))).to_be_visible()
    assert await drawn(page) < 100
    await expect(page.get_by_text("1 line matches", exact=True).first).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.locator(".log-line.is-current")).to_have_text("line 100400")
    assert "line 100400" in await lines_in_view(page)
    await page.get_by_role("log").evaluate("log => { log.scrollTop = 0; }")
    first = LAST - KEPT + 1
    await until(lambda: is_first_in_view(page, first), what="the first kept line is in view")
    assert await drawn(page) < 150


async def is_first_in_view(page: Page, number: int) -> bool:
    # The page keeps one line less than it asked for, so that it knows of earlier ones.
    return (await lines_in_view(page))[:1] in ([f"line {number}"], [f"line {number + 1}"])


async def is_following(page: Page) -> bool:
    return len(await lines_in_view(page)) > 5


async def test_the_end_of_a_growing_log_stays_in_view_until_the_reader_scrolls_up(tab: Tab, user: User) -> None:
    created = await user.submit(job("logs-grow", STEADY))
    await tab.open(f"#/jobs/{created['uid']}/logs")
    page = tab.page
    log = page.get_by_role("log")
    await expect(page.get_by_text(re.compile(r"^\d{1,2}.\d{3} lines$"))).to_be_visible()
    await until(lambda: is_following(page), what="lines are in view")
    assert await drawn(page) < 100
    await log.hover()
    await page.mouse.wheel(0, -3000)
    await expect(page.get_by_role("button", name="Jump to the end")).to_be_visible()
    await expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")
    await log.evaluate(AT_REST)
    stopped = await lines_in_view(page)
    count = page.get_by_text(re.compile(r"^\d{1,3}.\d{3} lines$"))
    known = await count.inner_text()
    await expect(count).not_to_have_text(known)
    assert await lines_in_view(page) == stopped
    await user.call("POST", "/logs-grow/cancel", 202, json={"reason": "enough"})
    await page.keyboard.press("f")
    await expect(page.get_by_text("the last line", exact=True)).to_be_visible()
    await expect(page.get_by_role("status").get_by_text(re.compile("^(Ended|Stored)$"))).to_be_visible()


@pytest.mark.parametrize("is_wrapped", [False, True])
async def test_the_end_of_a_log_stays_in_view_when_the_window_becomes_lower(
    tab: Tab, user: User, *, is_wrapped: bool
) -> None:
    name = "logs-lower-wrapped" if is_wrapped else "logs-lower"
    created = await user.submit(job(name, "seq -f 'line %.0f' 1 500"))
    await user.ended(name)
    page = tab.page
    await page.set_viewport_size({"width": 1280, "height": 1000})
    await tab.open(f"#/jobs/{created['uid']}/logs")
    if is_wrapped:
        await page.get_by_role("button", name="Wrap").click()
    await until(lambda: is_last_in_view(page, "line 500"), what="the last line is in view")
    before = len(await lines_in_view(page))
    await page.set_viewport_size({"width": 1280, "height": 713})
    await until(lambda: are_fewer_in_view(page, before), what="fewer lines are in view")
    await until(lambda: is_last_in_view(page, "line 500"), what="the last line is in view again")


async def is_last_in_view(page: Page, text: str) -> bool:
    return (await lines_in_view(page))[-1:] == [text]


async def are_fewer_in_view(page: Page, count: int) -> bool:
    return len(await lines_in_view(page)) < count
