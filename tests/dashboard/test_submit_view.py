"""The view that submits manifests: checks and completion while the user types, preview, and safe submissions."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Route, expect

from tests.dashboard.browser import PHONE, WIDE, Tab, opened
from tests.dashboard.conftest import NAMESPACE, ClosedGateway
from tests.dashboard.test_failures import sign_in
from tests.dashboard.test_jobs_table import late
from tests.e2e.user import User
from tests.support.gateways.bearer import bearer, revoke_all

pytestmark = pytest.mark.asyncio(loop_scope="session")

JOB = """apiVersion: batch.tensorstack.dev/v1beta1
kind: GenericJob
metadata:
  {name}
spec:
  replicaSpecs:
    - type: worker
      {replicas}
      template:
        spec:
          {extra}
          containers:
            - {{name: main, image: busybox, command: [sh, -c, exit 0]}}
"""


FINDING = {
    "object": "Pod previewed-worker-0",
    "task": "worker",
    "pointer": "/spec/replicaSpecs/0/template",
    "effect": "Waits",
    "code": "QuotaExceeded",
    "detail": "exceeded quota: pods",
}


def manifest(name: str, replicas: str = "replicas: 1", extra: str = "restartPolicy: Never") -> str:
    return JOB.format(name=name, replicas=replicas, extra=extra)


async def write(tab: Tab, text: str) -> None:
    """Type a text over that of the editor."""
    await tab.page.get_by_role("textbox", name="Manifest").click()
    await tab.page.keyboard.press("Control+A")
    await tab.page.keyboard.insert_text(text)


async def test_an_error_is_at_its_line_and_leads_there(tab: Tab) -> None:
    await tab.open("#/submit")
    await write(tab, manifest("name: first") + "---\n" + manifest("name: second", "replica: 1"))
    problem = tab.page.get_by_role("listitem").filter(has_text="unknown field")
    await expect(problem.get_by_text("/spec/replicaSpecs/0/replica")).to_be_visible()
    await expect(tab.page.locator(".cm-lint-marker-error")).to_have_count(1)
    await problem.get_by_role("button", name="Line 22").click()
    await expect(tab.page.locator(".cm-activeLine")).to_have_text(re.compile("replica: 1"))
    await expect(tab.page.get_by_role("textbox", name="Manifest")).to_be_focused()
    await write(tab, manifest("name: first"))
    await expect(tab.page.get_by_text("The gateway accepts it.")).to_be_visible()
    await expect(tab.page.locator(".cm-lint-marker-error")).to_have_count(0)


async def test_an_error_of_the_syntax_needs_no_request(tab: Tab) -> None:
    await tab.open("#/submit")
    await write(tab, "kind: GenericJob\nkind: MxJob\n")
    await expect(tab.page.get_by_role("button", name="Line 2")).to_be_visible()
    await expect(tab.page.get_by_role("button", name="Submit", exact=True)).to_be_disabled()
    assert [each for each in tab.requests if "dry-run" in each] == []


async def test_the_editor_completes_kinds_fields_and_pod_templates(tab: Tab) -> None:
    asked = asyncio.Event()
    await tab.page.route("**/api/v1/kinds", late(asked))
    await tab.open("#/submit")
    await expect(tab.page.get_by_label("Manifest")).to_be_visible()
    await write(tab, "kind: Gen")
    # While the editor computes a list, it shows the former one as disabled, and ignores a click on it.
    options = tab.page.locator(".cm-tooltip-autocomplete:not(.cm-tooltip-autocomplete-disabled)").get_by_role("option")
    await tab.page.keyboard.press("Control+Space")
    asked.set()  # the editor waits for the kinds
    await options.filter(has_text="GenericJob").click()
    await expect(tab.page.get_by_label("Manifest")).to_have_text("kind: GenericJob")
    for typed, chosen in (
        ("\nspec:\n  repl", "replicaSpecs"),
        ("temp", "template"),
        ("sp", "spec"),
        ("cont", "containers"),
    ):
        await tab.page.keyboard.type(typed)
        await tab.page.keyboard.press("Control+Space")
        # The editor ignores Enter for a moment after the list has opened, but not the mouse.
        await options.filter(has_text=chosen).first.click()
        await expect(tab.page.get_by_label("Manifest")).to_contain_text(f"{chosen}:")


async def test_the_preview_shows_the_plan_the_objects_and_the_findings_of_the_cluster(tab: Tab, user: User) -> None:
    async def with_finding(route: Route) -> None:
        answer = await route.fetch()
        body = await answer.json()
        assert body["items"][0]["cluster"]["isComplete"]
        body["items"][0]["cluster"]["findings"] = [FINDING]
        await route.fulfill(response=answer, json=body)

    await tab.page.route("**/dry-run?dryRun=All", with_finding)
    await tab.open("#/submit")
    await write(tab, manifest("name: previewed", "replicas: 2", "restartPolicy: Always"))
    await tab.page.get_by_role("button", name="Preview").click()
    preview = tab.page.get_by_role("region", name="Preview")
    await expect(preview.get_by_role("heading", name="GenericJob default/previewed")).to_be_visible()
    await expect(preview.get_by_role("cell", name="worker")).to_be_visible()
    await expect(preview.get_by_text("The job would wait")).to_be_visible()
    await expect(preview.get_by_text("the default of the gateway")).to_have_count(3)
    warning = preview.get_by_role("region", name="1 warning")
    await expect(warning).to_contain_text("the restartPolicy Always of the pod template has no effect")
    problems = tab.page.get_by_role("region", name="Checks")
    await expect(problems.get_by_role("button", name="Line 9")).to_be_visible()
    await preview.get_by_text("Pod previewed-worker-0", exact=True).click()
    await expect(preview.get_by_text("name: previewed-worker-0").first).to_be_visible()
    await user.call("GET", "/previewed", status=404)
    await write(tab, manifest("name: previewed"))
    await expect(preview.get_by_text("The text has changed since the preview.")).to_be_visible()


async def test_a_lost_answer_and_a_double_click_submit_once(tab: Tab, user: User) -> None:
    lost: list[str] = []

    async def lose_first(route: Route) -> None:
        key = route.request.headers["idempotency-key"]
        lost.append(key)
        if len(lost) == 1:
            await route.fetch()
            await route.abort()
        else:
            await route.continue_()

    await tab.page.route(f"**/namespaces/{NAMESPACE}/jobs", lose_first)
    await tab.open("#/submit")
    await write(tab, manifest("generateName: once-"))
    await expect(tab.page.get_by_text("The gateway accepts it.")).to_be_visible()
    await tab.page.get_by_role("button", name="Submit", exact=True).dblclick()
    link = tab.page.get_by_role("link", name=re.compile("once-"))
    await expect(link).to_be_visible()
    await expect(tab.page.get_by_role("button", name="Submitted")).to_be_disabled()
    assert len(lost) > 1
    assert len(set(lost)) == 1
    assert len((await user.read("?prefix=once-"))["items"]) == 1
    await tab.page.get_by_role("button", name="Submit once more").click()
    await tab.page.get_by_role("button", name="Submit", exact=True).click()
    await expect(tab.page.get_by_role("button", name="Submitted")).to_be_visible()
    assert len(set(lost)) == 2
    assert len((await user.read("?prefix=once-"))["items"]) == 2
    await link.click()
    await expect(tab.page).to_have_url(re.compile("#/jobs/[0-9a-f-]{36}$"))


async def test_documents_of_several_resources_and_namespaces_are_submitted_together(tab: Tab) -> None:
    sample_set = """apiVersion: batch.paddlepaddle.org/v1alpha1
kind: SampleSet
metadata: {name: mixed-set}
spec: {partitions: 1, noSync: true, secretRef: {name: mixed}}
"""
    await tab.open("#/submit")
    await write(tab, f"{manifest('name: mixed-job')}---\n{sample_set}---\n{manifest('name: mixed-job-2')}")
    await expect(tab.page.get_by_text("The gateway accepts it.")).to_be_visible()
    await tab.page.get_by_role("button", name="Submit", exact=True).click()
    for kind, name in (("GenericJob", "mixed-job"), ("GenericJob", "mixed-job-2"), ("SampleSet", "mixed-set")):
        await expect(tab.page.get_by_role("link", name=f"{kind} default/{name}", exact=True)).to_be_visible()


async def test_examples_and_files_start_a_manifest(tab: Tab, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(manifest("name: own"), encoding="utf-8")
    await tab.open("#/submit")
    async with tab.page.expect_file_chooser() as chooser:
        await tab.page.get_by_role("button", name="Open files").click()
    await (await chooser.value).set_files(file)
    editor = tab.page.get_by_role("textbox", name="Manifest")
    await expect(editor).to_contain_text("name: own")
    await tab.page.get_by_label("Start from").select_option(label="flaky")
    await expect(editor).to_contain_text("name: flaky")
    await expect(tab.page.get_by_text("The gateway accepts it.")).to_be_visible()
    await tab.page.get_by_role("button", name="Bring my text back").click()
    await expect(editor).to_contain_text("name: own")
    transfer = await tab.page.evaluate_handle(
        "() => { const data = new DataTransfer(); data.items.add(new File(['kind: Dropped'], 'd.yaml')); return data; }"
    )
    await editor.dispatch_event("drop", {"dataTransfer": transfer})
    await expect(editor).to_contain_text("kind: Dropped")
    await expect(editor).to_contain_text("name: own")


async def test_the_text_survives_a_reload_and_a_sign_in(browser: Browser, closed_gateway: ClosedGateway) -> None:
    async with opened(browser, closed_gateway.url, token=closed_gateway.token) as tab:
        await tab.open("#/submit")
        await write(tab, manifest("name: survives"))
        await expect(tab.page.get_by_text("The gateway accepts it.")).to_be_visible()
        await tab.page.reload()
        await expect(tab.page.get_by_role("textbox", name="Manifest")).to_contain_text("name: survives")
        await revoke_all(closed_gateway.database_url)
        await expect(tab.page.get_by_role("dialog", name="Sign in")).to_be_visible()
        headers = await bearer(closed_gateway.database_url, "submitter", NAMESPACE)
        await sign_in(tab, headers["Authorization"].removeprefix("Bearer "))
        await expect(tab.page.get_by_role("textbox", name="Manifest")).to_contain_text("name: survives")
        await tab.page.get_by_role("button", name="Submit", exact=True).click()
        await expect(tab.page.get_by_role("link", name="GenericJob default/survives")).to_be_visible()
        await tab.page.get_by_role("button", name="Sign out").click()
        await expect(tab.page.get_by_role("dialog", name="Sign in")).to_be_visible()
        await expect(tab.page.locator(".cm-content")).to_have_text("")


async def test_the_view_is_accessible_in_both_schemes_and_on_a_phone(browser: Browser, tab: Tab) -> None:
    for size, dark in ((WIDE, False), (WIDE, True), (PHONE, False)):
        async with opened(browser, tab.url, size=size, dark=dark) as other:
            await other.open("#/submit")
            await write(other, manifest("name: accessible", "replica: 1"))
            await expect(other.page.get_by_text("unknown field")).to_be_visible()
            assert await other.accessibility_problems() == []
            width = await other.page.evaluate("document.documentElement.scrollWidth")
            assert width <= size[0], "the page scrolls sideways"
