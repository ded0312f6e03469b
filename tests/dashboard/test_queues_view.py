"""The pages of queues, and what the page of a job says about its queue."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.behaviour.queues.kueue import body_of, existing, queued, quota_objects
from tests.dashboard.browser import PHONE, WIDE, Tab, opened
from tests.dashboard.conftest import NAMESPACE
from tests.e2e.user import User, job
from tests.support.clusters.kube import Cluster, connect
from tests.support.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

RESEARCH = "research"
URGENT = f"{RESEARCH}-urgent"


@pytest_asyncio.fixture(loop_scope="session")
async def queues(cluster: Cluster) -> AsyncIterator[None]:
    """The queues `vision` and `speech`, which share a quota of 0.2 CPUs, and `lost`, whose ClusterQueue is missing."""
    made = quota_objects(RESEARCH, "200m", flavor={}, priority_class=URGENT)
    for name, cluster_queue in (("vision", RESEARCH), ("speech", RESEARCH), ("lost", f"no-{RESEARCH}")):
        local = body_of("LocalQueue", name, spec={"clusterQueue": cluster_queue})
        local["metadata"]["namespace"] = NAMESPACE
        made.append(local)
    async with connect(cluster) as kube, existing(kube, made):
        yield


async def submit(user: User, name: str, queue: str, *, replicas: int = 1, priority: str | None = None) -> str:
    """Submit a job whose replicas request 0.1 CPUs each, and return its uid."""
    manifest = job(name, "exec sleep 600", replicas=replicas)
    container = manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "100m"}}
    return str((await user.submit(queued(manifest, queue, priority)))["uid"])


@pytest.mark.usefixtures("queues")
async def test_the_pages_show_queues_who_waits_and_who_preempted(
    browser: Browser, tab: Tab, user: User, screenshots: Path | None
) -> None:
    uids = {"speech-model": await submit(user, "speech-model", "speech")}
    await user.until("speech-model", "Running")
    uids["experiment"] = await submit(user, "experiment", "vision")
    await user.until("experiment", "Running")
    uids["urgent-fix"] = await submit(user, "urgent-fix", "vision", priority=URGENT)
    await user.until("urgent-fix", "Running")
    # Which of the equal jobs it preempts is Kueue's choice.
    (evicted,) = [name for name in ("speech-model", "experiment") if (await read(user, name))["queue"]["eviction"]]
    await user.until(evicted, "Queued")
    queue = (await read(user, evicted))["queue"]["name"]
    await until(lambda: pending(user, queue), bool, what="the queue has the job that waits", within=120)

    await tab.open("#/queues")
    rows = tab.page.get_by_role("table", name="Queues").get_by_role("row")
    used = "200m of 200m" if evicted == "speech-model" else "100m of 200m, 200m by all queues"
    await expect(rows.filter(has_text="vision")).to_contain_text(used)
    await expect(rows.filter(has_text="lost")).to_contain_text("not active")
    await rows.get_by_role("link", name=queue).click()
    waiting = tab.page.get_by_role("table", name="Pending jobs").get_by_role("row").filter(has_text=evicted)
    await expect(waiting).to_contain_text("WaitingForQuota")
    await waiting.get_by_role("link", name=evicted).click()
    about = tab.page.get_by_role("region", name="Queue")
    await expect(about).to_contain_text(f"1 in the ClusterQueue {RESEARCH}")
    await expect(about).to_contain_text("Preempted to accommodate a workload")
    await about.get_by_role("link", name="urgent-fix").click()
    await expect(about).to_contain_text(re.compile(r"Admission\s*admitted"))
    await tab.open("#/jobs")
    await tab.page.get_by_role("link", name=f"in {queue}").first.click()
    await expect(tab.page.get_by_role("button", name=queue)).to_have_attribute("aria-pressed", "true")

    views = {"queues": "#/queues", "queue": f"#/queues/{NAMESPACE}/{queue}", "job-queued": f"#/jobs/{uids[evicted]}"}
    for size, dark in ((WIDE, False), (WIDE, True), (PHONE, False)):
        async with opened(browser, tab.url, size=size, dark=dark) as other:
            for name, fragment in views.items():
                await other.open(fragment)
                await expect(other.page.get_by_text(queue).first).to_be_visible()
                assert await other.accessibility_problems() == []
                assert await other.page.evaluate("document.documentElement.scrollWidth") <= size[0]
                if screenshots is not None and (size, dark) == (WIDE, False):
                    await other.page.screenshot(path=screenshots / f"{name}.png")


async def test_the_page_of_a_queue_shows_what_is_free_and_only_reported_positions(tab: Tab) -> None:
    about = {"kind": "MxJob", "priority": 0, "since": None, "code": "WaitingForQuota", "message": ""}
    jobs = [{"uid": name, "name": name, "position": place, **about} for name, place in (("known", 7), ("other", None))]
    quota = {"flavor": "a100", "resource": "cpu", "nominalQuota": "4", "used": "6", "usedByQueue": "5"}
    lent = [quota | {"cohortFree": "2", "cohortMost": "8"}]
    empty = {"cohort": "lab", "resources": lent, "active": True, "message": "", "observedAt": "2026-01-31T12:00:00Z"}
    counts = {"pending": 2, "admitted": 0, "pendingJobs": jobs, "pendingJobsOmitted": 0}
    queue = {"namespace": NAMESPACE, "name": "long", "clusterQueue": RESEARCH} | empty | counts
    await tab.page.route(f"**/namespaces/{NAMESPACE}/queues/long", lambda route: route.fulfill(json=queue))
    await tab.open(f"#/queues/{NAMESPACE}/long")
    rows = tab.page.get_by_role("table", name="Pending jobs").get_by_role("row")
    for name, shown in (("known", "7"), ("other", "\N{EN DASH}")):
        await expect(rows.filter(has_text=name).get_by_role("cell").first).to_have_text(shown)
    await expect(tab.page.get_by_text("5 of 4, 6 by all queues, 2 free in the cohort")).to_be_visible()
    await expect(tab.page.get_by_text("lab, whose ClusterQueues lend each other quota")).to_be_visible()
    await expect(tab.page.get_by_text("Kueue does not report the position of all jobs")).to_be_visible()


async def read(user: User, name: str) -> Any:
    return (await user.read(f"/{name}/status"))["status"]


async def pending(user: User, queue: str) -> Any:
    answer = await user.http.get(f"/api/v1/namespaces/{NAMESPACE}/queues/{queue}")
    return answer.status_code == 200 and answer.json()["pendingJobs"]
