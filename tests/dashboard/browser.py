"""A tab of Chromium that reports what a user does not see: script errors and refused content."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Page, expect

ROOT = Path(__file__).parents[2]
AXE = ROOT / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
WIDE = (1280, 800)
PHONE = (375, 800)
# Chromium reports each failed request in the console; a test that ends the gateway expects them.
_FAILED_REQUEST = ("Failed to load resource", "net::ERR_")
# WCAG 2.2 AA: https://github.com/dequelabs/axe-core/blob/develop/doc/API.md#axe-core-tags
_RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
# Those whose result depends on colours. A dark page differs from the light one in nothing else.
_RULES_OF_COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
SECONDS = 60.0

expect.set_options(timeout=SECONDS * 1000)


@dataclass  # without slots: Playwright adds attributes to the objects whose methods it calls
class Tab:
    """A page of the browser. `errors` are script errors and violations of the Content-Security-Policy."""

    page: Page
    url: str
    is_dark: bool
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    async def open(self, fragment: str = "#/jobs") -> None:
        await self.page.goto(f"{self.url}/{fragment}")

    async def accessibility_problems(self) -> list[str]:
        """Return the problems that axe finds in what the page shows now; in the dark, only those of colours."""
        await self.page.evaluate(_axe())
        rules = _RULES_OF_COLOURS if self.is_dark else _RULES
        found: dict[str, Any] = await self.page.evaluate("rules => axe.run(document, {runOnly: rules})", rules)
        return [
            f"{problem['id']}: {node['html'][:200]} {node['failureSummary']}"
            for problem in found["violations"]
            for node in problem["nodes"]
        ]

    def note_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(part in message.text for part in _FAILED_REQUEST):
            self.errors.append(message.text)


@cache
def _axe() -> str:
    return AXE.read_text(encoding="utf-8")


@asynccontextmanager
async def opened(
    browser: Browser,
    url: str,
    *,
    size: tuple[int, int] = WIDE,
    dark: bool = False,
    token: str | None = None,
    elsewhere: tuple[str, ...] = (),
) -> AsyncIterator[Tab]:
    """Open a tab with storage of its own. After the block, it must have had no error and no request elsewhere.

    `elsewhere` are the beginnings of other addresses that the tab may visit.
    """
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
    )
    if token is not None:
        await context.add_init_script(f"window.sessionStorage.setItem('jobgate.token', '{token}')")
    page = await context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    tab = Tab(page, url, dark)
    page.on("console", tab.note_console)
    page.on("pageerror", lambda error: tab.errors.append(str(error)))
    page.on("request", lambda request: tab.requests.append(request.url))
    try:
        yield tab
        assert tab.errors == []
        assert [each for each in tab.requests if not each.startswith((f"{url}/", "blob:", *elsewhere))] == []
    finally:
        await context.close()
