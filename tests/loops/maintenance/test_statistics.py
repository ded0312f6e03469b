"""What the controller exposes of the whole installation, and only while its term runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from prometheus_client import REGISTRY

from app.base.bounded_names import OTHERS, BoundedNames
from app.base.cancellation import TaskGroup
from app.base.clock import SystemClock
from app.db.feed import entries
from app.db.installation import statistics
from app.db.installation.leases import Lease
from app.db.jobs.submit import submit
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.reservations.pod_limits import PodLimits
from app.domain.vocabulary import JobPhase
from app.loops import metrics
from app.loops.maintenance.statistics import Statistics
from tests.db.factories import NOW, move, new_job, submitted
from tests.support.telemetry.metrics import value
from tests.support.waiting import until

AS_KIND = {"namespace": "team-a", "kind": "GenericJob"}


@asynccontextmanager
async def running(db: Database, every: float = 0.01) -> AsyncIterator[None]:
    async with TaskGroup() as group:
        task = group.create_task(Statistics(db, SystemClock()).run(every))
        try:
            yield
        finally:
            task.cancel()


async def shown(name: str, wanted: float, **labels: str) -> None:
    await until(lambda: value(name, **labels), lambda found: found == wanted, what=f"{name} is {wanted}", within=60)


async def test_live_jobs_are_counted_by_kind_and_phase(db: Database, lease: Lease) -> None:
    uids = await submitted(db, *(new_job(f"job-{number}", kind="GenericJob") for number in range(3)))
    await move(db, lease, uids[0], JobPhase.RUNNING)
    await move(db, lease, uids[1], JobPhase.SUCCEEDED)
    assert (await statistics.counts(db)).jobs == {
        ("team-a", "GenericJob", "Running"): 1,
        ("team-a", "GenericJob", "Queued"): 1,
    }
    async with running(db):
        await shown("jobgate_jobs", 1, phase="Running", **AS_KIND)
        assert REGISTRY.get_sample_value("jobgate_jobs", {"phase": "Succeeded", **AS_KIND}) is None
        await move(db, lease, uids[2], JobPhase.RUNNING)
        await shown("jobgate_jobs", 2, phase="Running", **AS_KIND)
        assert REGISTRY.get_sample_value("jobgate_jobs", {"phase": "Queued", **AS_KIND}) is None
    assert REGISTRY.get_sample_value("jobgate_jobs", {"phase": "Running", **AS_KIND}) is None


async def test_jobs_that_wait_for_room_are_counted_by_namespace(db: Database) -> None:
    limits = PodLimits(installation=10, namespace=2, waiting=9)
    for number, namespace in enumerate(("team-a", "team-a", "team-a", "team-b")):
        job = new_job(f"job-{number}", namespace=namespace, pods=2)
        await submit(db, [job], limits)
    async with running(db):
        await shown("jobgate_jobs_without_room", 2, namespace="team-a")
        assert REGISTRY.get_sample_value("jobgate_jobs_without_room", {"namespace": "team-b"}) is None


async def test_the_count_reads_the_index_of_live_jobs(db: Database) -> None:
    async with db.read() as connection:
        await connection.execute("SET enable_seqscan = off")
        plan = await connection.fetch(f"EXPLAIN {statistics.LIVE}")
        await connection.execute("RESET enable_seqscan")
    assert any("jobs_live" in row[0] for row in plan)


async def test_the_backlog_of_the_feed_falls_when_it_is_published(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job("job"))
    await move(db, lease, uid, JobPhase.RUNNING)
    async with running(db):
        await shown("jobgate_feed_unnumbered_entries", 2)
        await entries.publish(db)
        await shown("jobgate_feed_position", 2)
        await shown("jobgate_feed_unnumbered_entries", 0)


async def test_size_and_oldest_rows(db: Database) -> None:
    empty = await statistics.storage(db)
    assert empty.oldest == {}
    await submitted(db, new_job("old", created_at=NOW - timedelta(days=3)))
    await submitted(db, new_job("new", created_at=NOW))
    await entries.publish(db)
    stored = await statistics.storage(db)
    assert stored.bytes > 1_000_000
    assert stored.oldest["jobs"] == stored.oldest["status_history"] == NOW - timedelta(days=3)
    assert set(stored.oldest) == {"jobs", "status_history", "job_events"}
    async with running(db):
        await until(lambda: value("jobgate_database_size_bytes"), what="the size", within=60)
        assert value("jobgate_table_oldest_row_age_seconds", table="jobs") > 3 * 86400


async def test_an_outage_keeps_the_last_values(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await submitted(db, new_job("job", kind="GenericJob"))
    async with running(db):
        await shown("jobgate_jobs", 1, phase="Queued", **AS_KIND)
        failed = asyncio.Event()

        async def fail(_: Database) -> statistics.Counts:
            failed.set()
            raise DatabaseUnavailable("it is down")

        monkeypatch.setattr(statistics, "counts", fail)
        await asyncio.wait_for(failed.wait(), 60)
        assert value("jobgate_jobs", phase="Queued", **AS_KIND) == 1


async def test_jobs_of_namespaces_beyond_the_bound_are_counted_together(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "NAMESPACES", BoundedNames(1))
    names = ["small", "large", "large", "other"]
    await submitted(db, *(new_job(f"job-{n}", namespace=name, kind="GenericJob") for n, name in enumerate(names)))
    async with running(db):
        for namespace, count in (("large", 2), (OTHERS, 2)):
            await shown("jobgate_jobs", count, phase="Queued", kind="GenericJob", namespace=namespace)
