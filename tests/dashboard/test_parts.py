"""Views and dialogs stay while a user types, clicks and goes offline. A part that cannot be loaded says so."""

import re
import secrets
from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.dashboard.browser import Tab, opened
from tests.dashboard.conftest import ClosedGateway
from tests.dashboard.exercise import exercise
from tests.dashboard.sets import create, create_set
from tests.e2e.user import User, job
from tests.support.gateways.bearer import bearer, revoke_all
from tests.support.gateways.process import GatewayProcess
from tests.support.waiting import until
from tools.dashboard import BUILT, DASHBOARD

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Each view, with the name of its link and a text that it shows.
VIEWS = {
    "submit": "There is no manifest yet.",
    "data": "Sample",
    "queues": "There is no queue",
    "usage": "Download CSV",
    "autoscaler": "Runs",
    "system": "Accepted kinds",
}
TABS = ("", "/replicas", "/logs", "/history", "/events", "/scaling", "/manifest")
FAILED = re.compile("The page (could not load|failed to show)")


def scalable(name: str, script: str) -> dict[str, Any]:
    """Return a DIJob whose collectors can be scaled from 1 to 4."""
    container = {"name": "di-container", "image": "busybox", "command": ["sh", "-c", script]}
    template = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}
    return {
        "apiVersion": "diengine.opendilab.org/v2alpha1",
        "kind": "DIJob",
        "metadata": {"name": name},
        "spec": {
            "minReplicas": 1,
            "maxReplicas": 4,
            "tasks": [{"type": "collector", "replicas": 2, "template": template}],
        },
    }


@pytest_asyncio.fixture(loop_scope="session")
async def running(user: User) -> AsyncIterator[str]:
    """The uid of a job that runs and can be scaled."""
    created = await user.submit(scalable(f"exercised-{uuid4().hex[:8]}", "sleep 600"))
    await user.until(created["name"], "Running")
    yield created["uid"]
    await user.call("DELETE", f"/{created['name']}", 202)


def alert(scope: Page | Locator) -> Locator:
    return scope.get_by_role("alert").filter(has_text=FAILED)


async def test_numbers_are_typed_and_stepped_in_the_dialog_scale(tab: Tab, running: str) -> None:
    await tab.open(f"#/jobs/{running}")
    await tab.page.get_by_role("button", name="Scale", exact=True).click()
    dialog = tab.page.get_by_role("dialog", name=re.compile("^Scale exercised"))
    size = dialog.get_by_role("textbox", name="Replicas of collector")
    for _ in range(2):
        await dialog.get_by_role("button", name="Increase").click()
    await expect(size).to_have_value("4")
    for _ in range(3):
        await dialog.get_by_role("button", name="Decrease").click()
    await size.press("ArrowUp")
    await size.press("Control+A")
    await size.press_sequentially("3")
    # What is typed counts at once, so that one press is enough.
    added = dialog.get_by_text("Scale adds 1 replica to collector: rank 2.")
    await expect(added).to_be_visible()
    # Whoever scrolls the dialog does not change the size that the mouse happens to be over.
    await size.hover()
    for _ in range(5):
        await tab.page.mouse.wheel(0, 100)
    await size.press("Home")  # after the wheel
    await expect(size).to_have_value("3")
    await expect(added).to_be_visible()


async def test_the_dialog_of_an_action_stays_offline_and_keeps_its_input(tab: Tab, user: User) -> None:
    """For the actions of a job that runs, each of which leads to the state that the next one needs."""
    name = "offline"
    created = await user.submit(job(name, "sleep 600"))
    await user.until(name, "Running")
    for action, phase in (("Pause", "Paused"), ("Resume", "Running"), ("Cancel", "Cancelled")):
        await act_offline(tab, action, created)
        await user.until(name, phase)
    await act_offline(tab, "Retry", created)


async def test_the_dialogs_of_sizes_and_deletions_stay_offline_and_keep_their_input(tab: Tab, user: User) -> None:
    name = "offline"
    created = await user.submit(scalable(name, "sleep 600"))
    await user.until(name, "Running")
    await act_offline(tab, "Scale", created)
    records = partial(user.read, f"/{name}/scale-records")
    await until(records, lambda found: found["items"][0]["outcome"] is not None, what="the job has its new size")
    await act_offline(tab, "Delete", created)


async def act_offline(tab: Tab, action: str, created: dict[str, Any]) -> None:
    """Fill in the dialog of the action, confirm it offline and then online."""
    name = created["name"]
    # A page that shows an earlier state asks for another decision when it receives the present one.
    await tab.open(f"#/jobs/{created['uid']}")
    await tab.page.reload()
    await tab.page.get_by_role("button", name=action, exact=True).click()
    dialog = tab.page.get_by_role("dialog", name=f"{action} {name}")
    await exercise(tab.page, dialog)
    field = dialog.get_by_label("Name of the new job" if action == "Retry" else "Reason")
    await field.fill("kept-meanwhile")
    if action == "Scale":
        await dialog.get_by_role("textbox", name="Replicas of collector").fill("3")
        await field.focus()
    confirm = dialog.get_by_role("button", name=f"{action} the job")
    await tab.page.context.set_offline(True)
    await confirm.click()
    await expect(dialog.get_by_text(re.compile("the gateway does not answer"))).to_be_visible()
    await tab.page.mouse.click(5, 5)  # beside the dialog
    await expect(field).to_have_value("kept-meanwhile")
    await tab.page.context.set_offline(False)
    await confirm.click()
    await expect(dialog).to_have_count(0)


async def test_a_dialog_keeps_its_input_while_the_user_signs_in_again(
    browser: Browser, closed_gateway: ClosedGateway
) -> None:
    created = await closed_gateway.user.submit(job("signs-in", "sleep 600"))
    # Otherwise the job could change while the dialog is open, which would then ask for another decision.
    await closed_gateway.user.until("signs-in", "Running")
    async with opened(browser, closed_gateway.url, token=closed_gateway.token) as tab:
        await tab.open(f"#/jobs/{created['uid']}")
        await tab.page.get_by_role("button", name="Cancel", exact=True).click()
        reason = tab.page.get_by_label("Reason")
        await reason.fill("it diverges")
        await revoke_all(closed_gateway.database_url)
        headers = await bearer(closed_gateway.database_url, "submitter", "default")
        sign_in = tab.page.get_by_role("dialog", name="Sign in")
        await exercise(tab.page, sign_in)
        await sign_in.get_by_label("Token").fill(headers["Authorization"].removeprefix("Bearer "))
        await sign_in.get_by_role("button", name="Sign in").click()
        await expect(sign_in).to_have_count(0)
        await expect(reason).to_have_value("it diverges")
        await tab.page.get_by_role("button", name="Cancel the job").click()
        await expect(tab.page.get_by_text("The cancel is requested.")).to_be_visible()


async def test_views_stay_while_a_user_types_clicks_and_goes_offline(
    browser: Browser, gateway: GatewayProcess, user: User, running: str
) -> None:
    sample_set = await create_set(user, "exercised")
    await create(user, "samplejobs", "SampleJob", "exercised", {"type": "clear", "sampleSetRef": {"name": "exercised"}})
    for view in ("jobs", *VIEWS, *(f"jobs/{running}{each}" for each in TABS), f"data/{sample_set['uid']}"):
        try:
            async with opened(browser, gateway.url) as tab:
                await exercise_offline(tab, f"#/{view}")
        except Exception as error:
            error.add_note(f"in the view {view}")
            raise


async def exercise_offline(tab: Tab, address: str) -> None:
    await tab.open(address)
    main = tab.page.get_by_role("main")
    await expect(main).to_be_visible()
    await expect(main.get_by_text("Loading")).to_have_count(0)
    await exercise(tab.page, main)
    await tab.page.context.set_offline(True)
    await tab.open(address)
    await exercise(tab.page, main)
    await tab.page.context.set_offline(False)
    await expect(main).not_to_be_empty()
    await expect(alert(tab.page)).to_have_count(0)


DENIED = "throw new DOMException('denied', 'SecurityError');"
STORAGES = {
    "denied": f"Object.defineProperty(window, 'sessionStorage', {{get() {{ {DENIED} }}}});",
    "unreadable": f"Storage.prototype.getItem = Storage.prototype.setItem = () => {{ {DENIED} }};",
    "full": "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); };",
}


@pytest.mark.parametrize("storage", STORAGES)
async def test_the_page_works_in_a_browser_that_stores_nothing(
    browser: Browser, closed_gateway: ClosedGateway, storage: str
) -> None:
    await closed_gateway.user.submit(job("stored-nowhere", "exit 0"))
    async with opened(browser, closed_gateway.url) as tab:
        await tab.page.add_init_script(STORAGES[storage])
        await tab.open()
        sign_in = tab.page.get_by_role("dialog", name="Sign in")
        await sign_in.get_by_label("Token").fill(closed_gateway.token)
        await sign_in.get_by_role("button", name="Sign in").click()
        await expect(tab.page.get_by_role("link", name="stored-nowhere", exact=True)).to_be_visible()
        await tab.page.get_by_role("link", name="Submit", exact=True).click()
        await tab.page.get_by_label("Start from").select_option(label="flaky")
        await expect(tab.page.get_by_text("The gateway accepts it.")).to_be_visible()
        await tab.page.get_by_role("link", name="Jobs", exact=True).click()
        await tab.page.get_by_role("link", name="Submit", exact=True).click()
        await expect(tab.page.get_by_role("textbox", name="Manifest")).to_contain_text("name: flaky")


@pytest.mark.parametrize("view", VIEWS)
async def test_a_view_that_cannot_be_loaded_offers_a_reload(tab: Tab, view: str) -> None:
    await tab.open("#/jobs")
    await expect(tab.page.locator("[data-level=live]")).to_be_visible()
    await tab.page.context.set_offline(True)
    await tab.page.get_by_role("navigation").get_by_role("link", name=re.compile(view, re.IGNORECASE)).click()
    await expect(alert(tab.page)).to_contain_text("could not load the view")
    assert await tab.accessibility_problems() == []
    reload = alert(tab.page).get_by_role("button", name="Reload the page")
    await reload.click()
    await expect(alert(tab.page)).to_contain_text("Nothing was reloaded")
    await tab.page.get_by_role("link", name="Jobs", exact=True).click()
    await expect(alert(tab.page)).to_have_count(0)
    await tab.page.go_back()
    await tab.page.context.set_offline(False)
    await reload.click()
    await expect(tab.page.get_by_text(VIEWS[view]).first).to_be_visible()
    await expect(alert(tab.page)).to_have_count(0)


async def test_a_part_that_an_upgrade_has_replaced_leaves_the_rest(
    browser: Browser, closed_gateway: ClosedGateway
) -> None:
    """Each part that is loaded when it is shown, by its script and by its style sheet."""
    user = closed_gateway.user
    sample_set = await create_set(user, "replaced")
    views = {each: (each, "the view") for each in ("submit", "queues", "usage", "autoscaler", "system")}
    parts = {f"{name}-view": shown for name, shown in views.items()} | {
        "first-job": ("jobs", "the example"),
        "caches-view": ("data", "the view"),
        "set-view": (f"data/{sample_set['uid']}", "the view"),
        "job-view": ("jobs/11111111-1111-4111-8111-111111111111", "the view"),
        "queue-view": ("queues/default/team", "the view"),
        "editor": ("submit", "the editor"),
        "load-chart": ("autoscaler", "the chart"),
    }
    lazy = re.compile(r"loadedLater\(\s*\(\) => import\(\"\./(?:\w+/)?([\w-]+)\"")
    sources = [path.read_text(encoding="utf-8") for path in (DASHBOARD / "src").rglob("*.tsx")]
    assert {name for text in sources for name in lazy.findall(text)} == set(parts)
    styled = {path.name.rpartition("-")[0] for path in (BUILT / "assets").glob("*.css")}
    admin = (await bearer(closed_gateway.database_url, "admin", "*"))["Authorization"].removeprefix("Bearer ")
    async with opened(browser, closed_gateway.url, token=admin) as tab:
        for part, (view, what) in parts.items():
            for ending in ("js", "css") if part in styled else ("js",):
                await tab.page.route(f"**/assets/{part}-*.{ending}", absent)
                await tab.open(f"#/{view}")
                await tab.page.reload()
                await expect(alert(tab.page)).to_contain_text(f"could not load {what}")
                await expect(tab.page.get_by_role("heading", level=1).or_(alert(tab.page)).first).to_be_visible()
                await expect(tab.page.get_by_role("navigation", name="Views")).to_be_visible()
                await tab.page.unroute_all()
                await alert(tab.page).get_by_role("button", name="Reload the page").click()
                await expect(alert(tab.page)).to_have_count(0)
                await expect(tab.page.get_by_role("main").get_by_text("Loading")).to_have_count(0)


async def absent(route: Route) -> None:
    await route.fulfill(status=404, body="not found")


async def test_an_answer_that_a_view_cannot_show_leaves_the_rest(tab: Tab, user: User, running: str) -> None:
    """A proxy may answer anything. A view that throws does not take the page with it."""
    sample_set = await create_set(user, f"hollow-{secrets.token_hex(3)}")
    views = ("jobs", *VIEWS, *(f"jobs/{running}{each}" for each in TABS), f"data/{sample_set['uid']}", "data?show=jobs")
    answers: tuple[object, ...] = ({}, {"items": [{}], "nextPageToken": None}, [])
    for answer in answers:
        await tab.page.route("**/api/v1/**", partial(fulfill, answer))
        for view in views:
            await tab.open(f"#/{view}")
            await tab.page.reload()
            main = tab.page.get_by_role("main")
            await expect(tab.page.get_by_role("navigation", name="Views")).to_be_visible()
            await expect(main.get_by_text("Loading the view")).to_have_count(0)
            await expect(main).not_to_be_empty()
        await tab.page.unroute_all()
    # The page reports what a view has thrown, so that it can be found.
    tab.errors.clear()
    for view in views:
        await tab.open(f"#/{view}")
        await tab.page.reload()
        await expect(tab.page.locator("[data-level=live]")).to_be_visible()
        await expect(tab.page.get_by_role("main").get_by_text("Loading")).to_have_count(0)
        await expect(alert(tab.page)).to_have_count(0)


async def fulfill(answer: object, route: Route) -> None:
    await route.fulfill(json=answer)


async def test_a_page_whose_program_cannot_be_loaded_says_so(tab: Tab) -> None:
    await tab.page.route("**/assets/index-*.js", lambda route: route.fulfill(status=404, body="not found"))
    await tab.open()
    await expect(tab.page.get_by_text("The page has not loaded.")).to_be_visible()
