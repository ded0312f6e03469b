"""A term works on the cluster that its database belongs to, and concludes nothing before it has listed everything."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from app.base.clock import SystemClock
from app.db.installation import heartbeats
from app.db.installation import identity as installation
from app.db.installation.heartbeats import Heartbeat
from app.db.jobs import controller
from app.db.postgres.errors import DatabaseUnavailable, LeaseLost
from app.domain.kubernetes import labels
from app.domain.vocabulary import JobPhase, Reason
from app.k8s.errors import KubeForbidden
from app.loops.autoscaling.autoscaler import Autoscaler
from app.loops.context import ControllerContext
from app.loops.jobs.mirror import Mirror
from app.loops.leadership.controller_state import ControllerState
from app.loops.leadership.identity import WrongCluster
from app.loops.maintenance.janitor import Janitor
from app.loops.maintenance.statistics import Statistics
from app.loops.maintenance.sweeper import Sweeper
from app.loops.term import Term
from app.loops.workqueue import WorkQueue
from tests.db.factories import stored
from tests.loops.harness import WITHIN, Harness
from tests.support.telemetry.log_lines import Logged
from tests.support.waiting import until


def a_term(harness: Harness, context: ControllerContext | None = None) -> tuple[Term, ControllerState]:
    state = ControllerState()
    return Term(context or harness.context, harness.leadership, state, lambda: None), state


async def bind(harness: Harness) -> None:
    """Store the installation, which the composition root does at the start of a process."""
    clock = SystemClock()
    await installation.get_or_create(harness.db, harness.context.installation_id, clock.now())


@asynccontextmanager
async def a_running_term(harness: Harness, context: ControllerContext | None = None) -> AsyncIterator[ControllerState]:
    await bind(harness)
    term, state = a_term(harness, context)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(term.run())
        try:
            yield state
        finally:
            task.cancel()


async def state_is(state: ControllerState, wanted: str) -> None:
    await until(lambda: state.state, lambda found: found == wanted, what=f"the state {wanted}", within=WITHIN)


async def test_a_term_finds_new_jobs_without_a_hint_and_follows_their_pods(harness: Harness) -> None:
    async with a_running_term(harness) as state:
        await state_is(state, "Running")
        uid = await harness.submit(replicas=1)
        (name,) = await harness.pods_until(lambda found: len(found) == 1)
        await harness.kubelet.run(name)
        await harness.kubelet.finish(name)
        await harness.phase(uid, JobPhase.SUCCEEDED)
        beat = await heartbeats.read(harness.db)
    assert beat is not None
    assert beat.state == "Running"


async def test_the_first_heartbeat_follows_the_first_list_at_once(harness: Harness) -> None:
    settings = replace(harness.context.settings, heartbeat_every=600.0)
    async with a_running_term(harness, replace(harness.context, settings=settings)):
        beat = await until(lambda: heartbeats.read(harness.db), what="a heartbeat", within=WITHIN)
    assert beat.state == "Running"


async def test_the_heartbeat_has_the_load_of_the_controller(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkQueue, "__len__", lambda _: 3)
    monkeypatch.setattr(WorkQueue, "longest_wait", 5.0)
    before = harness.context.clock.now()
    async with a_running_term(harness):
        beat = await until(lambda: heartbeats.read(harness.db), what="a heartbeat", within=WITHIN)
    assert beat.queued == 3
    assert beat.queued_since is not None
    assert abs(beat.queued_since - before + timedelta(seconds=5)) < timedelta(seconds=WITHIN)
    assert beat.call_p50 is not None
    assert beat.call_p99 is not None
    assert 0 < beat.call_p50 <= beat.call_p99


async def test_the_state_names_no_namespace_whose_watch_fails(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    """`/readyz` shows the message of the state without a token."""
    refused = KubeForbidden(403, "Forbidden", 'pods is forbidden in the namespace "team-b"')
    monkeypatch.setattr(Mirror, "last_error", refused)
    monkeypatch.setattr(Mirror, "last_contact", harness.context.clock.now() - timedelta(hours=1))
    async with a_running_term(harness) as state:
        await state_is(state, "Unreachable")
        beat = await until(lambda: heartbeats.read(harness.db), what="a heartbeat", within=WITHIN)
    for message in (state.message, beat.message):
        assert message.startswith("no watch has sent anything for 36")
        assert message.endswith(" s: 403 Forbidden")
    assert logged.texts("watch.failed") == [str(refused)]


async def test_the_log_has_each_error_of_a_watch_also_before_the_first_list(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    errors = [KubeForbidden(403, "Forbidden", f"pods is forbidden in {name}") for name in ("team-a", "team-b")]
    monkeypatch.setattr(Mirror, "last_contact", None)
    expected: list[str] = []
    async with a_running_term(harness):
        for error in errors:
            monkeypatch.setattr(Mirror, "last_error", error)
            expected.append(str(error))
            await until(partial(logged.texts, "watch.failed"), expected.__eq__, within=WITHIN)


async def test_nothing_is_reconciled_before_all_pods_are_listed(harness: Harness) -> None:
    async with a_running_term(harness) as state:
        uid = await harness.submit(replicas=1)
        (name,) = await harness.pods_until(lambda found: len(found) == 1)
        await harness.kubelet.run(name)
        before = await harness.phase(uid, JobPhase.RUNNING)
    await harness.inject(verb="list", resource="pods", status=503)
    async with a_running_term(harness) as state:
        await harness.hits()
        assert state.state == "Syncing"
        assert (await stored(harness.db, uid)).recorded == before.recorded
        await harness.heal()
        await state_is(state, "Running")
        await harness.kubelet.finish(name)
        after = await harness.phase(uid, JobPhase.SUCCEEDED)
    assert [replica.attempt.number for replica in after.recorded.replicas.values()] == [1]


async def test_statuses_are_stale_until_each_live_job_was_reconciled_once(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_running_term(harness) as state:
        await harness.submit("one", replicas=1)
        await harness.submit("other", replicas=1)
        await harness.pods_until(lambda found: len(found) == 2)
        await state_is(state, "Running")
    former = await until(lambda: heartbeats.read(harness.db), what="a heartbeat", within=WITHIN)
    release, load = asyncio.Event(), controller.load

    async def held(*arguments: Any) -> Any:
        await release.wait()
        return await load(*arguments)

    monkeypatch.setattr(controller, "load", held)
    settings = replace(harness.context.settings, heartbeat_every=0.01)
    async with a_running_term(harness, replace(harness.context, settings=settings)) as state:
        syncing = await beat_is(harness, "Syncing")
        assert syncing.observed_at == former.observed_at
        release.set()
        running = await beat_is(harness, "Running")
    assert running.observed_at > former.observed_at


@pytest.mark.parametrize("loop", [Autoscaler, Janitor, Sweeper, Statistics])
async def test_autoscaling_and_maintenance_wait_until_each_live_job_is_reconciled(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, loop: type
) -> None:
    """The autoscaler would decide on what an older term recorded, and maintenance would delay the reconciles."""
    await harness.submit(replicas=1)
    reached, release, runs = asyncio.Event(), asyncio.Event(), asyncio.Event()
    load = controller.load

    async def held(*arguments: Any) -> Any:
        reached.set()
        await release.wait()
        return await load(*arguments)

    async def run(*_: object) -> None:
        runs.set()

    monkeypatch.setattr(controller, "load", held)
    monkeypatch.setattr(loop, "run", run)
    async with a_running_term(harness) as state:
        await asyncio.wait_for(reached.wait(), WITHIN)
        assert not runs.is_set()
        release.set()
        await asyncio.wait_for(runs.wait(), WITHIN)
        await state_is(state, "Running")


async def test_a_job_that_cannot_be_reconciled_keeps_no_other_status_stale(harness: Harness) -> None:
    uid = await harness.submit(replicas=1)
    async with harness.db.begin() as connection:
        await connection.execute("""UPDATE jobs SET manifest = '{"spec": "not a spec"}'""")
    async with a_running_term(harness) as state:
        await state_is(state, "Running")
        assert (await stored(harness.db, uid)).recorded.status.reason == Reason.NOT_RECONCILABLE


async def test_the_namespace_of_a_job_is_known_before_its_pods_queue_it(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue takes turns between namespaces. Pods are listed before the jobs are read from PostgreSQL."""
    uid = await harness.submit(replicas=1)
    async with a_running_term(harness):
        await harness.pods_until(lambda found: len(found) == 1)
    queued: list[tuple[str, str]] = []
    enqueue = WorkQueue._enqueue

    def spied(queue: WorkQueue, key: str, added_at: float) -> None:
        queued.append((key, queue._group_of(key)))
        enqueue(queue, key, added_at)

    monkeypatch.setattr(WorkQueue, "_enqueue", spied)
    async with a_running_term(harness) as state:
        await state_is(state, "Running")
    assert set(queued) == {(str(uid), harness.namespace)}


async def test_live_jobs_are_queued_once_kueue_can_be_read_also_after_a_failure_of_postgres(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, reads = controller.read_live, 0

    async def fails_once(*arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        if reads == 2:
            raise DatabaseUnavailable("no answer")
        return await live(*arguments)

    monkeypatch.setattr(controller, "read_live", fails_once)
    await harness.inject(verb="list", resource="localqueues", status=403)
    async with a_running_term(harness) as state:
        await state_is(state, "Running")
        await harness.heal()
        await until(lambda: reads, lambda found: found == 3, what="a third read of the live jobs", within=WITHIN)


async def beat_is(harness: Harness, wanted: str) -> Heartbeat:
    found = await until(
        lambda: heartbeats.read(harness.db),
        lambda beat: beat is not None and beat.state == wanted,
        what=f"a heartbeat of the state {wanted}",
        within=WITHIN,
    )
    assert found is not None
    return found


async def test_the_heartbeat_reports_an_api_server_that_does_not_answer(harness: Harness, logged: Logged) -> None:
    async def heartbeat() -> str:
        beat = await heartbeats.read(harness.db)
        return "" if beat is None else f"{beat.state}: {beat.message}"

    async with a_running_term(harness) as state:
        await state_is(state, "Running")
        rule = {"namespace": "*", "resource": "namespaces", "name": "kube-system", "status": 503}
        await harness.inject(verb="get", message="no etcd leader", **rule)
        await state_is(state, "Unreachable")
        # `/readyz` shows the message without a token, so what the API server says is only in the log.
        parts = ("Unreachable: the API server has not answered", " s: 503 ServiceUnavailable")
        await until(heartbeat, lambda text: all(part in text for part in parts), within=WITHIN)
        assert logged.texts("probe.failed") == ["503 ServiceUnavailable: no etcd leader"]
        await harness.heal()
        await state_is(state, "Running")


async def test_a_term_ends_when_the_lease_is_lost(harness: Harness) -> None:
    await bind(harness)
    term, state = a_term(harness)

    async def run_until_the_lease_is_lost() -> None:
        async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
            group.create_task(term.run())
            await state_is(state, "Running")
            await harness.leadership.release()

    with pytest.raises(ExceptionGroup) as ended:
        await run_until_the_lease_is_lost()
    # Several loops may write at the same time, and then each of them loses the lease.
    _, others = ended.value.split(LeaseLost)
    assert others is None


async def test_a_term_does_nothing_on_a_cluster_of_another_database(harness: Harness) -> None:
    await bind(harness)
    await installation.bind_cluster(harness.db, harness.leadership.lease, str(uuid4()))
    uid = await harness.submit()
    term, _ = a_term(harness)
    with pytest.raises(WrongCluster, match="this database belongs to the cluster"):
        await asyncio.wait_for(term.run(), WITHIN)
    assert await harness.pods() == {}
    assert (await stored(harness.db, uid)).recorded.replicas == {}


async def test_a_term_does_nothing_with_a_database_that_is_older_than_the_cluster_has_seen(harness: Harness) -> None:
    await bind(harness)
    await harness.kube.post("/api/v1/namespaces", {"metadata": {"name": "jobgate-system"}})
    name = f"jobgate-installation-{harness.installation}"
    noted = {"metadata": {"name": name}, "data": {"epoch": "1000", "position": "0"}}
    (await harness.kube.post("/api/v1/namespaces/jobgate-system/configmaps", noted)).ok()
    await harness.submit()
    term, _ = a_term(harness)
    with pytest.raises(WrongCluster, match="the database is older than what this cluster has seen"):
        await asyncio.wait_for(term.run(), WITHIN)
    assert await harness.pods() == {}


async def test_a_term_stops_once_a_copy_of_its_database_works_on_the_cluster(harness: Harness) -> None:
    """A former primary that comes back may have reached more than the one that has replaced it."""
    path = f"/api/v1/namespaces/jobgate-system/configmaps/jobgate-installation-{harness.installation}"
    async with a_running_term(harness) as state:
        await state_is(state, "Running")
    await harness.kube.eventually(path, lambda found: "mark" in found["data"], within=WITHIN)
    async with a_running_term(harness) as state:
        await state_is(state, "Running")
    (await harness.kube.patch(path, {"data": {"mark": "of-the-copy", "epoch": "0", "position": "0"}})).ok()
    await harness.submit()
    term, _ = a_term(harness)
    with pytest.raises(WrongCluster, match="another copy of this database has worked on this cluster"):
        await asyncio.wait_for(term.run(), WITHIN)
    assert await harness.pods() == {}


async def test_a_record_of_a_version_without_marks_is_accepted(harness: Harness) -> None:
    path = f"/api/v1/namespaces/jobgate-system/configmaps/jobgate-installation-{harness.installation}"
    async with a_running_term(harness) as state:
        await state_is(state, "Running")
    (await harness.kube.patch(path, {"data": {"mark": None}})).ok()
    async with a_running_term(harness) as state:
        await state_is(state, "Running")


async def test_a_database_whose_schema_went_back_and_forth_continues(harness: Harness) -> None:
    """The migrations have dropped its marks, and the version before has left the last one on the cluster."""
    path = f"/api/v1/namespaces/jobgate-system/configmaps/jobgate-installation-{harness.installation}"
    async with a_running_term(harness) as state:
        await state_is(state, "Running")
    last = (await harness.kube.eventually(path, lambda found: "mark" in found["data"], within=WITHIN))["data"]["mark"]
    async with harness.db.begin() as connection:
        await connection.execute("UPDATE installation SET marks = DEFAULT")
    async with a_running_term(harness) as state:
        await state_is(state, "Running")
    await harness.kube.eventually(path, lambda found: found["data"]["mark"] != last, within=WITHIN)


@pytest.mark.parametrize("value", ["not-a-uid", "{uid}"], ids=["no uid", "uid in capitals"])
async def test_a_pod_whose_job_label_is_no_uid_does_not_end_the_term(harness: Harness, value: str) -> None:
    """Any client that may create a pod can set the labels, and could otherwise stop the controller for all tenants."""
    async with a_running_term(harness) as state:
        await state_is(state, "Running")
        uid = await harness.submit(replicas=1)
        await harness.pods_until(lambda found: len(found) == 1)
        forged = value.format(uid=str(uid).upper())
        await harness.make_pod("forged", labels=harness.labels(uid) | {labels.JOB_UID: forged})
        name = (await harness.pods_until(lambda found: len(found) == 2))[-1]
        await harness.kubelet.run(name)
        await harness.kubelet.finish(name)
        await harness.phase(uid, JobPhase.SUCCEEDED)
