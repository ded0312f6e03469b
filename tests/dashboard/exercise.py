"""Use a view or a dialog as an impatient user does: type into every field, and press every button several times."""

from typing import Final

from playwright.async_api import ElementHandle, Locator, Page

FIELDS: Final = "input:not([type=file]):not([type=checkbox]):not([type=radio]):not([type=hidden]), textarea"
BUTTONS: Final = "button, [role=button], [role=radio], [role=checkbox], summary"
# They leave the view, or change jobs: for these, there are other tests.
LEFT_OUT: Final = ("Sign out", "Sign in", "Reload the page", " the job", "Submit", "Delete the", "Close")
TYPED: Final = "1a<b>"
KEYS: Final = ("ArrowUp", "ArrowUp", "ArrowDown", "PageUp", "Backspace")


async def exercise(page: Page, scope: Locator) -> None:
    """Type into each field of the scope, and press each of its buttons, also those that appear meanwhile."""
    for field in await scope.locator(FIELDS).element_handles():
        if await field.is_visible() and await field.is_enabled() and await field.is_editable():
            await field.type(TYPED)
            for key in KEYS:
                await field.press(key)
    dialogs = page.locator(".overlay")
    open_before = await dialogs.count()
    pressed: set[str] = set()
    while (button := await _other(scope, pressed)) is not None:
        for _ in range(3):
            await button.evaluate("button => button.isConnected && button.click()")
        if await dialogs.count() > open_before:
            await page.keyboard.press("Escape")


async def _other(scope: Locator, pressed: set[str]) -> ElementHandle | None:
    """Return the next button whose text was not pressed yet."""
    for button in await scope.locator(BUTTONS).element_handles():
        text = await button.evaluate("button => (button.ariaLabel ?? button.innerText ?? '').trim()")
        if text not in pressed and not any(part in text for part in LEFT_OUT) and await button.is_visible():
            pressed.add(text)
            return button
    return None
