"""The contrast of what a user can press or type into, as the browser computes it in each state."""

from typing import Any, Final

from playwright.async_api import ElementHandle, Page

STATES: Final = ("normal", "hover", "focus", "active", "disabled")
CONTROLS: Final = (
    "a, button, input:not([type=file]), select, textarea, summary, "
    "[role=button], [role=tab], [role=radio], [role=option], [role=switch], [role=checkbox]"
)
# WCAG 2.2 AA: 1.4.3 for text, 1.4.11 for the outline of the focus. It exempts disabled controls; people read them too.
TEXT: Final = 4.5
OUTLINE: Final = 3.0

# The kinds of controls: an element of each combination of tag, classes and selection, which has its own rules.
_KINDS: Final = """selector => {
  const found = new Map();
  for (const element of document.querySelectorAll(selector)) {
    const box = element.getBoundingClientRect();
    // A link for the keyboard is above the page until it has the focus.
    if (box.width < 8 || box.height < 8 || box.bottom <= 0) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const states = ['data-selected', 'aria-current', 'aria-disabled', 'data-invalid'].map(
      name => element.hasAttribute(name) ? `[${name}=${element.getAttribute(name)}]` : '');
    const place = element.closest('.dialog-buttons, .note, .table-row, .header, .actions')?.className ?? '';
    const classes = element.className.baseVal ?? element.className;
    found.set(`${place} ${element.tagName}.${classes}${states.join('')}`, element);
  }
  return [...found.entries()];
}"""

# Colours are blended from the page to the element, with the opacity of each ancestor.
_MEASURE: Final = """element => {
  const parse = text => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return text.startsWith('color(') ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const blend = (front, back, alpha) => back.map((each, index) => front[index] * alpha + each * (1 - alpha));
  const path = [];
  const above = each => each.parentElement ?? each.getRootNode().host ?? null;
  for (let each = element; each !== null; each = above(each)) path.unshift(each);
  let back = [255, 255, 255], below = back, opacity = 1;
  for (const each of path) {
    const style = getComputedStyle(each);
    const [r, g, b, a] = parse(style.backgroundColor);
    below = back;
    opacity *= Number(style.opacity);
    back = blend([r, g, b], back, a * opacity);
  }
  const light = ([r, g, b]) => [r, g, b].map(each => each / 255)
    .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
    .reduce((sum, each, index) => sum + each * [0.2126, 0.7152, 0.0722][index], 0);
  const ratio = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const style = getComputedStyle(element);
  const [r, g, b, a] = parse(style.color);
  const outline = style.outlineStyle === 'none' || parseFloat(style.outlineWidth) === 0
    ? null : ratio(parse(style.outlineColor).slice(0, 3), below);
  return { text: ratio(blend([r, g, b], back, a * opacity), back), outline };
}"""
# A control is pressed, and nothing happens.
_HOLD: Final = """isHeld => {
  const types = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'dragstart'];
  if (window.isHeld === undefined) {
    for (const type of types) window.addEventListener(type, event => {
      if (!window.isHeld) return;
      event.stopImmediatePropagation();
      if (type === 'click' || type === 'dragstart') event.preventDefault();
    }, true);
  }
  window.isHeld = isHeld;
}"""
_DISABLE: Final = """element => {
  if ('disabled' in element) element.disabled = true;
  element.setAttribute('aria-disabled', 'true');
  element.setAttribute('data-disabled', 'true');
}"""


async def kinds_of_controls(page: Page) -> dict[str, ElementHandle]:
    found = await page.evaluate_handle(_KINDS, CONTROLS)
    kinds = {}
    for index in range(await found.evaluate("entries => entries.length")):
        element = (await found.evaluate_handle("(entries, index) => entries[index][1]", index)).as_element()
        assert element is not None
        kinds[await found.evaluate("(entries, index) => entries[index][0]", index)] = element
    return kinds


async def invisible_states(page: Page, kind: str, control: ElementHandle) -> list[str]:
    """Return the states in which the control is hard to see, with the contrast that the browser computes."""
    found = []
    for state in STATES:
        await page.mouse.move(0, 0)
        if state == "hover":
            await control.hover(force=True)
        elif state == "focus":
            await page.keyboard.press("Shift")  # the keyboard makes the focus visible
            await control.focus()
        elif state == "active":
            await page.evaluate(_HOLD, arg=True)
            await control.hover(force=True)
            await page.mouse.down()
        elif state == "disabled":
            await control.evaluate(_DISABLE)
        measured: dict[str, Any] = await control.evaluate(_MEASURE)
        if state == "active":
            await page.mouse.up()
            await page.evaluate(_HOLD, arg=False)
        if measured["text"] < TEXT:
            found.append(f"{kind}, {state}: text {measured['text']:.2f}")
        is_focused = state == "focus" and await control.evaluate("element => element.matches(':focus-visible')")
        if is_focused and (measured["outline"] or 0) < OUTLINE:
            found.append(f"{kind}, {state}: outline {measured['outline']}")
    return found
