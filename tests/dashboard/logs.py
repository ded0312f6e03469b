"""The lines of a log that a page shows."""

from typing import Final

from playwright.async_api import Page

# What Chromium calls a line in view: one whose middle is inside of the region that scrolls.
_VISIBLE: Final = """log => {
  const box = log.getBoundingClientRect();
  const middle = line => { const {top, bottom} = line.getBoundingClientRect(); return (top + bottom) / 2; };
  const isInside = line => middle(line) > box.top && middle(line) < box.bottom;
  return [...log.querySelectorAll('.log-line')].filter(isInside).map(line => line.textContent);
}"""


async def lines_in_view(page: Page) -> list[str]:
    found: list[str] = await page.get_by_role("log").evaluate(_VISIBLE)
    return found
