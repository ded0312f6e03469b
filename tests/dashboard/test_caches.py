"""The caches of nodes and the progress of operations. The test writes what the controller would find, and none runs."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from app.db.installation import leases
from app.db.postgres.engine import Database
from app.domain.cache.reconcile.cache_status import NodeCache, ServerReport, aggregate
from app.domain.cache.reconcile.progress import OperationProgress
from app.domain.cache.vocabulary import SampleJobPhase, SetPhase
from tests.dashboard.browser import PHONE, WIDE, opened
from tests.dashboard.conftest import NAMESPACE
from tests.dashboard.sets import create, create_set
from tests.e2e.user import User
from tests.support.clusters.kube import Cluster
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.kinds.samples import conclude

pytestmark = pytest.mark.asyncio(loop_scope="session")

GIB = 2**30
NODES = (
    NodeCache(node="node-a", server="imagenet-runtime-0", cached_bytes=GIB // 2),
    NodeCache(node="node-b", server="imagenet-runtime-1", cached_bytes=None, message="the server does not answer"),
)
CACHE = aggregate([ServerReport(node="node-a", total_size=str(2 * GIB), cached_size=str(GIB // 2))])
WARMED = OperationProgress(files_done=20_480, files_total=1_281_167, bytes_done=None, reporting=2, servers=2)
COPIED = OperationProgress(files_done=3, files_total=None, bytes_done=GIB, reporting=1, servers=1)


class Site:
    """A gateway without a controller, and the database behind it."""

    def __init__(self, url: str, user: User, db: Database, lease: leases.Lease) -> None:
        self.url, self.user = url, user
        self._db, self._lease = db, lease

    async def conclude(self, uid: str, **record: Any) -> None:
        async def lease() -> leases.Lease:
            return self._lease

        gateway: Any = SimpleNamespace(db=self._db, lease=lease)
        await conclude(gateway, uid, record)

    async def warm_up(self, name: str, sample_set: str) -> str:
        spec = {"type": "warmup", "sampleSetRef": {"name": sample_set}}
        uid: str = (await create(self.user, "samplejobs", "SampleJob", name, spec))["uid"]
        return uid


@pytest_asyncio.fixture(loop_scope="session")
async def site(cluster: Cluster, database_url: str, tmp_path: Path) -> AsyncIterator[Site]:
    environment = STEADY | {"JOBGATE_ROLE": "api"}
    async with gateway_process(database_url, cluster.kubeconfig, tmp_path, **environment) as running:
        url = await running.start()
        db = await Database.open(database_url, pool_size=2)
        lease = await leases.acquire(db, "controller", "a test", ttl=3600)
        assert lease is not None
        async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
            yield Site(url, User(http, NAMESPACE), db, lease)
        await db.close()


def row_of(page: Page, table: str, text: str) -> Locator:
    return page.get_by_role("table", name=table).get_by_role("row").filter(has_text=text)


async def test_each_node_shows_its_share_or_why_it_is_not_known(browser: Browser, site: Site) -> None:
    uid = (await create_set(site.user, "imagenet"))["uid"]
    await site.conclude(uid, phase=SetPhase.READY, cache=CACHE, nodes=NODES)
    async with opened(browser, site.url) as tab:
        await tab.open(f"#/data/{uid}")
        known, unknown = (row_of(tab.page, "Caches of the nodes", node) for node in ("node-a", "node-b"))
        await expect(known.get_by_text("512.0 MiB, 25 % of the data")).to_be_visible()
        await expect(unknown.get_by_text("not known")).to_be_visible()
        await expect(unknown.get_by_text("the server does not answer")).to_be_visible()
        await site.conclude(uid, nodes=(NODES[0], replace(NODES[1], cached_bytes=2 * GIB, message="")))
        await expect(unknown.get_by_text("2.0 GiB, 100 % of the data")).to_be_visible()


async def test_a_running_sync_and_a_warm_up_show_how_far_they_are(browser: Browser, site: Site) -> None:
    uid = (await create_set(site.user, "imagenet"))["uid"]
    job = await site.warm_up("warm", "imagenet")
    await site.conclude(uid, phase=SetPhase.SYNCING, sync_job="a", sync_progress=COPIED)
    await site.conclude(job, phase=SampleJobPhase.RUNNING, progress=WARMED)
    async with opened(browser, site.url) as tab:
        await tab.open(f"#/data/{uid}")
        await expect(tab.page.get_by_text("3 files, 1.0 GiB")).to_be_visible()
        of_set = row_of(tab.page, "Sample jobs of the set, the newest first", "warm")
        await expect(of_set.get_by_text("20,480 of 1,281,167 files, 1 %")).to_be_visible()
        await site.conclude(uid, sync_progress=None)
        await expect(tab.page.get_by_text("its server reports no progress now")).to_be_visible()
        await tab.open("#/data?show=jobs")
        row = tab.page.get_by_role("row").filter(has_text="warm")
        await expect(row.get_by_text("20,480 of 1,281,167 files, 1 %")).to_be_visible()
        half = replace(WARMED, files_done=640_000, files_total=None, reporting=1)
        await site.conclude(job, progress=half)
        await expect(row.get_by_text("640,000 files, as 1 of 2 servers report")).to_be_visible()


async def test_both_are_accessible_in_both_schemes_and_on_a_phone(browser: Browser, site: Site) -> None:
    uid = (await create_set(site.user, "imagenet"))["uid"]
    job = await site.warm_up("warm", "imagenet")
    await site.conclude(uid, phase=SetPhase.SYNCING, sync_job="a", cache=CACHE, nodes=NODES, sync_progress=COPIED)
    await site.conclude(job, phase=SampleJobPhase.RUNNING, progress=WARMED)
    for size, dark in ((WIDE, False), (WIDE, True), (PHONE, False)):
        async with opened(browser, site.url, size=size, dark=dark) as tab:
            for fragment in (f"#/data/{uid}", f"#/data?show=jobs&open={job}"):
                await tab.open(fragment)
                await expect(tab.page.get_by_text("20,480 of 1,281,167 files, 1 %").first).to_be_visible()
                assert await tab.accessibility_problems() == []
                width = await tab.page.evaluate("document.documentElement.scrollWidth")
                assert width <= size[0], "the page scrolls sideways"
