"""The view of one job: the cause of its phase, its replicas over time, and what the address selects."""

import json
import re
from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from tests.dashboard.browser import PHONE, WIDE, Tab, opened
from tests.e2e.user import User, job
from tests.support.clusters.kube import Cluster
from tests.support.gateways.process import STEADY, GatewayProcess, gateway_process

pytestmark = pytest.mark.asyncio(loop_scope="session")

TABS = ("", "/replicas", "/history", "/events", "/scaling", "/manifest")
THOUSAND = UUID(int=1000)
# Replicas 3, 13, … have failed once, after 10 of 60 minutes.
FILL = """
WITH job AS (
  INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by, phase, reason, message,
                    quiet, started_at, finished_at)
  VALUES ($1, 'default', 'thousand', 'GenericJob', 'batch.tensorstack.dev/v1beta1', $2,
          '2026-01-31T12:00:00Z', 'me', 'Succeeded', 'RuleFulfilled', 'all workers have succeeded', true,
          '2026-01-31T12:00:00Z', '2026-01-31T13:00:00Z')
), ended AS (
  INSERT INTO attempts (job_uid, task, rank, attempt, phase, outcome, evidence, created_at, started_at, finished_at,
                        exit_code, reason)
  SELECT $1, 'worker', rank, 1, 'Failed', 'Failed', 'Captured', '2026-01-31T12:00:00Z', '2026-01-31T12:01:00Z',
         '2026-01-31T12:10:00Z', 137, 'OOMKilled'
  FROM generate_series(3, 999, 10) AS rank
)
INSERT INTO replicas (job_uid, task, rank, pod_name, attempt, phase, outcome, evidence, created_at, started_at,
                      finished_at, exit_code, restarts, disruptions)
SELECT $1, 'worker', rank, 'thousand-worker-' || rank, CASE WHEN rank % 10 = 3 THEN 2 ELSE 1 END, 'Succeeded',
       'Succeeded', 'Captured', '2026-01-31T12:11:00Z', '2026-01-31T12:12:00Z', '2026-01-31T13:00:00Z', 0,
       CASE WHEN rank % 10 = 3 THEN 1 ELSE 0 END, 0
FROM generate_series(0, 999) AS rank
"""


def row_of(page: Page, name: str) -> Locator:
    """Return the row of a replica in the timeline."""
    return page.get_by_role("list", name="Replicas over time").get_by_role("button", name=re.compile(re.escape(name)))


async def test_a_failed_job_shows_its_cause_and_the_attempt_that_failed(tab: Tab, user: User) -> None:
    created = await user.submit(job("view-fails", "echo a defect in the input; exit 42"))
    await user.ended("view-fails")
    await tab.open(f"#/jobs/{created['uid']}")
    cause = tab.page.get_by_role("region", name="Phase and cause")
    await expect(cause).to_contain_text(re.compile(r"Failed: worker\[0\] exited with 42 on \S+, attempt 1"))
    await expect(cause.get_by_role("region", name="The last lines of its log")).to_have_text("a defect in the input")
    row = row_of(tab.page, "worker[0], Failed, 1 attempt: attempt 1 failed")
    await row.focus()
    await tab.page.keyboard.press("Enter")
    details = tab.page.get_by_role("dialog", name="worker[0]")
    await expect(details.get_by_role("table", name="Containers of attempt 1")).to_contain_text("42")
    await expect(details.get_by_role("region", name="Last log lines of attempt 1")).to_contain_text("a defect")
    await expect(details.get_by_role("link", name="Log of attempt 1")).to_have_attribute(
        "href", f"#/jobs/{created['uid']}/logs?task=worker&rank=0&attempt=1"
    )
    await tab.page.keyboard.press("Escape")
    await expect(details).to_have_count(0)
    await expect(row).to_be_focused()


async def test_the_view_follows_a_restart_a_pause_and_a_delete(tab: Tab, user: User) -> None:
    script = 'test "$JOBGATE_ATTEMPT" != 1 || exit 3; sleep 600'
    manifest = job("view-follows", script, restart={"policy": "OnFailure", "limit": 3})
    container = manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    attempt = {"fieldRef": {"fieldPath": "metadata.labels['jobgate.dev/attempt']"}}
    container["env"] = [{"name": "JOBGATE_ATTEMPT", "valueFrom": attempt}]
    created = await user.submit(manifest)
    await tab.open(f"#/jobs/{created['uid']}")
    restarted = "worker[0], Running, 2 attempts: attempt 1 failed after "
    await expect(row_of(tab.page, restarted)).to_be_visible()
    await expect(tab.page.get_by_role("region", name="Phase and cause")).to_contain_text("Running: 1 of 1 replicas")
    await user.call("POST", "/view-follows/pause", 202)
    changes = tab.page.get_by_role("list", name="Changes of the job")
    await expect(changes).to_contain_text("PauseRequested by")
    await expect(tab.page.get_by_role("list", name="Phases of the job")).to_contain_text("Paused")
    await expect(row_of(tab.page, "attempt 2 stopped after ")).to_be_visible()
    await user.call("DELETE", "/view-follows", 202)
    await expect(tab.page.get_by_text("This job was deleted")).to_be_visible()


async def test_a_job_that_has_ended_warns_of_what_still_runs_until_a_cancel_stops_it(tab: Tab, user: User) -> None:
    manifest = job("view-left", "exit 1", failureRules=[{"worker": [0]}], successRules=[], cleanUpPolicy="None")
    chief = deepcopy(manifest["spec"]["replicaSpecs"][0]) | {"type": "chief"}
    chief["template"]["spec"] |= {"terminationGracePeriodSeconds": 1}
    chief["template"]["spec"]["containers"][0]["command"] = ["sleep", "600"]
    manifest["spec"]["replicaSpecs"].append(chief)
    created = await user.submit(manifest)
    await user.ended("view-left")
    await tab.open(f"#/jobs/{created['uid']}")
    warning = tab.page.get_by_role("status").filter(has_text="1 replica of this job still runs")
    await expect(warning).to_contain_text("Cancel the job to stop them.")
    assert await tab.accessibility_problems() == []
    await tab.page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = tab.page.get_by_role("dialog", name="Cancel view-left")
    await expect(dialog).to_contain_text("The job stays Failed, as it has ended.")
    await dialog.get_by_role("button", name="Cancel the job").click()
    await expect(dialog).to_have_count(0)
    await expect(warning).to_have_count(0)
    await expect(row_of(tab.page, "chief[0], Deleted, 1 attempt: attempt 1 stopped")).to_be_visible()
    assert (await user.read("/view-left/status"))["status"]["phase"] == "Failed"


async def test_the_warnings_of_a_job_are_shown_with_their_source_and_field(tab: Tab, user: User) -> None:
    manifest = job("view-warned", "exit 0", restart={"policy": "OnFailure"})
    manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["restartPolicy"] = "Always"
    created = await user.submit(manifest)
    warnings = created["status"]["warnings"]
    assert len(warnings) == 2
    await tab.open(f"#/jobs/{created['uid']}")
    shown = tab.page.get_by_role("region", name="2 warnings")
    for warning in warnings:
        item = shown.get_by_role("listitem").filter(has_text=warning["message"])
        await expect(item).to_contain_text(f"(jobgate, {warning['pointer']})")
    assert await tab.accessibility_problems() == []


async def test_the_view_stays_while_the_gateway_is_away_and_then_goes_on(
    tab: Tab, gateway: GatewayProcess, user: User
) -> None:
    created = await user.submit(job("view-stays", "sleep 600"))
    await tab.open(f"#/jobs/{created['uid']}")
    running = row_of(tab.page, "worker[0], Running, 1 attempt")
    await expect(running).to_be_visible()
    await gateway.kill()
    try:
        await expect(tab.page.locator("[data-level=offline]")).to_be_visible()
        await expect(running).to_be_visible()
    finally:
        await gateway.start()
    await user.call("POST", "/view-stays/cancel", 202, json={"reason": "enough"})
    await expect(tab.page.get_by_role("region", name="Phase and cause")).to_contain_text("Cancelled: cancelled by")
    await expect(row_of(tab.page, "attempt 1 stopped after ")).to_be_visible()


async def test_the_address_filters_replicas_and_selects_one(tab: Tab, user: User) -> None:
    script = 'test "$(rank)" != 1 || exit 5'
    created = await user.submit(job("view-filters", script, replicas=3))
    await user.ended("view-filters")
    await tab.open(f"#/jobs/{created['uid']}/replicas")
    table = tab.page.get_by_role("table", name="Replicas")
    await expect(table).to_have_attribute("aria-rowcount", "4")
    await tab.page.get_by_role("button", name=re.compile("^Failed")).click()
    await expect(tab.page).to_have_url(re.compile(r"/replicas\?phase=Failed$"))
    await expect(table.get_by_role("link")).to_have_text(["worker[1]"])
    await table.get_by_role("link").click()
    await expect(tab.page.get_by_role("dialog", name="worker[1]")).to_contain_text("exited with 5")
    await expect(tab.page).to_have_url(re.compile(r"\?phase=Failed&replica=worker%2F1$"))
    await tab.page.go_back()
    await expect(tab.page.get_by_role("dialog")).to_have_count(0)
    await tab.page.go_back()
    await expect(table).to_have_attribute("aria-rowcount", "4")


async def test_the_manifest_is_shown_downloaded_and_expanded_into_objects(tab: Tab, user: User) -> None:
    created = await user.submit(job("view-manifest", "exit 0", replicas=2))
    await user.ended("view-manifest")
    await tab.open(f"#/jobs/{created['uid']}/manifest")
    shown = tab.page.get_by_role("region", name="Manifest", exact=True)
    await expect(shown).to_contain_text("kind: GenericJob")
    await expect(shown).not_to_contain_text("cleanUpPolicy")
    await tab.page.get_by_role("radio", name="With defaults").click()
    await expect(shown).to_contain_text("cleanUpPolicy: None")
    await tab.page.get_by_role("radio", name="As posted").click()
    await expect(shown).not_to_contain_text("cleanUpPolicy")
    async with tab.page.expect_download() as download:
        await tab.page.get_by_role("button", name="Download").click()
    file = await download.value
    assert file.suggested_filename == "view-manifest.yaml"
    assert (await file.path()).read_text(encoding="utf-8").strip() == (await shown.inner_text()).strip()
    pod = tab.page.get_by_text("Pod view-manifest-worker-1", exact=True)
    await pod.click()
    await expect(tab.page.get_by_role("region", name="Pod view-manifest-worker-1")).to_contain_text("busybox")
    await tab.page.get_by_label("Task").select_option("worker")
    await expect(tab.page.get_by_text(re.compile("^Pod "))).to_have_count(2)
    await expect(tab.page.get_by_text(re.compile("^ConfigMap "))).to_have_count(0)


@pytest.mark.parametrize("uid", ["11111111-1111-4111-8111-111111111111", "nonsense"])
async def test_an_unknown_uid_is_explained(tab: Tab, uid: str) -> None:
    await tab.open(f"#/jobs/{uid}")
    await expect(tab.page.get_by_role("heading", name="No such job")).to_be_visible()


@pytest_asyncio.fixture(loop_scope="session")
async def large(cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[str]:
    """The address of a gateway with an ended job of a thousand replicas."""
    connection = await asyncpg.connect(database_url, timeout=60)
    await connection.execute(FILL, THOUSAND, json.dumps(job("thousand", "exit 0", replicas=1000)))
    await connection.close()
    async with gateway_process(database_url, cluster.kubeconfig, tmp_path, **STEADY) as running:
        yield await running.start()


async def test_a_thousand_replicas_are_drawn_row_by_row(browser: Browser, large: str) -> None:
    async with opened(browser, large) as tab:
        await tab.open(f"#/jobs/{THOUSAND}")
        rows = tab.page.get_by_role("list", name="Replicas over time").get_by_role("listitem")
        await expect(rows.first).to_have_attribute("aria-setsize", "1001")
        await rows.first.get_by_role("button").focus()
        await tab.page.keyboard.press("End")
        await expect(row_of(tab.page, "worker[999]")).to_be_focused()
        assert await rows.count() < 100
        await tab.page.keyboard.press("Home")
        only_failed = tab.page.get_by_role("button", name=re.compile("^With failures or disruptions"))
        await expect(only_failed).to_contain_text("100")
        await only_failed.click()
        await expect(rows.first).to_have_attribute("aria-setsize", "101")
        failed = "worker[3], Succeeded, 2 attempts: attempt 1 failed after 9m, exited with 137 (OOMKilled)"
        await expect(row_of(tab.page, failed)).to_be_visible()


async def test_zooming_shows_a_part_of_the_time(browser: Browser, large: str) -> None:
    async with opened(browser, large) as tab:
        await tab.open(f"#/jobs/{THOUSAND}")
        ticks = tab.page.locator(".timeline-tick")
        await expect(ticks).to_have_count(13)
        whole = await ticks.all_inner_texts()
        fit = tab.page.get_by_role("button", name="Fit the whole time")
        await expect(fit).to_be_disabled()
        box = await tab.page.locator(".timeline-axis").bounding_box()
        assert box is not None
        await tab.page.mouse.move(box["x"] + 100, box["y"] + 10)
        await tab.page.mouse.down()
        await tab.page.mouse.move(box["x"] + 200, box["y"] + 10)
        await tab.page.mouse.up()
        await expect(ticks.nth(1)).not_to_have_text(whole[1])
        await fit.click()
        await expect(ticks).to_have_text(whole)


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", WIDE), ("light", PHONE)])
async def test_every_tab_is_accessible(
    browser: Browser, tab: Tab, user: User, scheme: str, size: tuple[int, int]
) -> None:
    name = f"view-accessible-{scheme}-{size[0]}"
    created = await user.submit(job(name, "echo done; exit 1", replicas=12))
    await user.ended(name)
    async with opened(browser, tab.url, size=size, dark=scheme == "dark") as other:
        for fragment in (*TABS, "?replica=worker/3"):
            await other.open(f"#/jobs/{created['uid']}{fragment}")
            await expect(other.page.locator(".job-panel")).to_be_visible()
            await expect(other.page.get_by_text("Loading")).to_have_count(0)
            assert await other.accessibility_problems() == []
            width = await other.page.evaluate("document.documentElement.scrollWidth")
            assert width <= size[0], "the page scrolls sideways"
