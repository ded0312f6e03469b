"""The version before and this one run side by side on one database, and an upgrade loses no request and no job.

old, old ─▶ jobgate migrate ─▶ an old process restarts on the new schema ─▶ new, old ─▶ new, new
"""

import asyncio
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from app.db.postgres import migrations
from app.db.postgres.schema_version import check_database
from tests.crash.gateways import client_of
from tests.crash.ledger import ledger
from tests.crash.stories import FOREVER, generic_job, recovers, serves, task, trains
from tests.crash.test_recovery import pod_uids
from tests.crash.test_rolling_restart import API, CHECK_EVERY, Traffic, restart, stored
from tests.crash.test_workers import KUBECONFIG
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.balancer import balancer
from tests.support.gateways.forked_commands import jobgate
from tests.support.gateways.process import STEADY, GatewayProcess, gateway_process
from tests.support.schemas import revision

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
# The version before drains for a fixed time. On a busy machine, the health checks of the balancer are late.
PATIENT = API | {"JOBGATE_DRAIN_SECONDS": "15"}
# The last commit whose programs start only on a schema of their own revision, 0023.
BEFORE = "11f88ea571ef"


@pytest.fixture(scope="session")
def version_before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the version before. It runs with the packages of this one, which has only added some."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed: apt-get install git")
    archive = tmp_path_factory.mktemp("archive") / "before.tar"
    command = ["git", "archive", f"--output={archive}", BEFORE]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip(f"the history does not have the commit {BEFORE}: {ran.stderr.strip()}")
    directory = tmp_path_factory.mktemp("before")
    # Not `tarfile`, whose extraction filters Python has only since 3.11.4.
    shutil.unpack_archive(archive, directory)
    return directory


def migrate_before(checkout: Path, url: str) -> str:
    """Run `jobgate migrate` of the version before, and return what it prints."""
    environment = os.environ | {"JOBGATE_DATABASE_URL": url}
    command = [sys.executable, "-m", "app.cli", "migrate"]
    ran = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


async def upgrade(process: GatewayProcess, other: GatewayProcess, traffic: Traffic) -> None:
    process.checkout = None
    await restart(process, other, traffic)


async def test_an_upgrade_behind_a_load_balancer_loses_no_request(
    version_before: Path, empty_database_url: str, tmp_path: Path, prove: Callable[[str], None]
) -> None:
    url, kubeconfig = empty_database_url, tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    migrate_before(version_before, url)
    async with AsyncExitStack() as stack:
        first, second = [
            await stack.enter_async_context(gateway_process(url, kubeconfig, tmp_path / name, **PATIENT))
            for name in ("first", "second")
        ]
        first.checkout = second.checkout = version_before
        urls = [await first.start(), await second.start()]
        traffic = Traffic(await stack.enter_async_context(balancer(urls, check_every=CHECK_EVERY)), rate=50)
        async with traffic.running():
            await traffic.more(traffic.rate)
            await asyncio.to_thread(migrations.migrate, url)
            await traffic.more(traffic.rate)
            # As after the loss of a node. Its init container finds nothing to do.
            assert await asyncio.to_thread(migrate_before, version_before, url) == "the schema is current\n"
            await restart(second, first, traffic)
            await upgrade(first, second, traffic)
            await upgrade(second, first, traffic)
    assert traffic.lost == []
    assert await stored(url) == Counter(traffic.accepted), "each accepted job exists once"
    assert Counter(traffic.streamed) == Counter(traffic.accepted), "the stream has shown each job once"
    prove(f"rolling upgrade from {BEFORE}: {traffic.answers.total()} answers, lost 0, {dict(traffic.answers)}")


@pytest.mark.slow
async def test_jobs_live_through_an_upgrade_and_back(
    version_before: Path,
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    empty_database_url: str,
    tmp_path: Path,
) -> None:
    """Each version runs jobs on the new schema, also the one before after the other: a roll-back of the processes."""
    url = empty_database_url
    migrate_before(version_before, url)
    async with gateway_process(url, busy_cluster.kubeconfig, tmp_path / "gateway", **STEADY) as gateway:
        gateway.checkout = version_before
        await gateway.start()
        async with client_of(gateway, crash_api, crash_namespace) as client, asyncio.TaskGroup() as group:
            stories = [tell(f"{tell.__name__}-through", tmp_path) for tell in (recovers, serves, trains)]
            for story in stories:
                group.create_task(story.run(client))
            await asyncio.to_thread(migrations.migrate, url)
            for number, checkout in enumerate((version_before, None, version_before, None)):
                await serves(f"serves-{number}", tmp_path).run(client)
                await gateway.stop()
                gateway.checkout = checkout
                await gateway.start()
        async with ledger(url, busy_cluster) as book:
            await book.settled()
    assert await check_database(url) == []


async def test_the_schema_goes_back_to_the_version_before(version_before: Path, database_url: str) -> None:
    """Its program then finds its own revision, and this version says that a migration is due."""
    await asyncio.to_thread(migrations.downgrade, database_url, "0023")
    assert await revision(database_url) == ("0023", "0023")
    assert migrate_before(version_before, database_url) == "the schema is current\n"
    assert "run `jobgate migrate`" in (await check_database(database_url))[0]


async def test_jobs_live_through_a_schema_that_goes_back(
    version_before: Path,
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    empty_database_url: str,
    tmp_path: Path,
) -> None:
    """An operator takes the migrations back, runs the version before, and upgrades again. No pod is replaced."""
    url = empty_database_url
    await asyncio.to_thread(migrations.migrate, url)
    async with gateway_process(url, busy_cluster.kubeconfig, tmp_path / "gateway", **STEADY) as gateway:
        await gateway.start()
        async with client_of(gateway, crash_api, crash_namespace) as client:
            await client.submit(generic_job("stays", task("worker", FOREVER)))
            await client.until("stays", "Running")
            pods = await pod_uids(crash_api, crash_namespace)
            for number, (checkout, options) in enumerate(((version_before, ("--to", "0023", "--yes")), (None, ()))):
                await gateway.stop()
                migrated = await asyncio.to_thread(
                    jobgate, "migrate", *options, home=tmp_path, JOBGATE_DATABASE_URL=url
                )
                assert migrated.returncode == 0, migrated.stderr
                gateway.checkout = checkout
                await gateway.start()
                await client.until("stays", "Running")
                await serves(f"serves-{number}", tmp_path).run(client)
                assert (await pod_uids(crash_api, crash_namespace))["stays-worker-0"] == pods["stays-worker-0"]
            await client.act("POST", "stays", "cancel")
            await client.until("stays", "Cancelled")
            names = [job["name"] for job in (await client.http.get("/api/v1/jobs")).json()["items"]]
        async with ledger(url, busy_cluster) as book:
            await book.settled()
    assert sorted(names) == ["serves-0", "serves-1", "stays"]
    assert await check_database(url) == []
