"""The controller stores queues as they change in the cluster, and why it knows none."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from app.db import queues
from app.db.queues import KueueRecord, QueueKey, QueueRow
from app.domain.queueing.queue_status import FlavorQuota, QueueStatus
from app.domain.status.observed import KueueState
from app.domain.vocabulary import PendingCode
from app.k8s.errors import KubeNotFound
from app.k8s.watching.reflector import Reflector
from app.loops.controller_settings import QueueMode
from app.loops.jobs import queues as mirrored
from app.loops.jobs.queues import QueueMirror
from app.loops.queues.recorder import QueueRecorder
from tests.loops.harness import WITHIN, Harness, ignore
from tests.support.clusters.kueue import Queues, holds, queues_of, workload
from tests.support.telemetry.log_lines import Logged
from tests.support.telemetry.metrics import value
from tests.support.waiting import until

OLD_KEY = QueueKey("of-a-former", "controller")
OLD = QueueRow(
    **OLD_KEY._asdict(), observed_at=datetime(2026, 3, 1, tzinfo=UTC), status=QueueStatus(cluster_queue="research")
)

_STORE_ANCHOR: Final = "UPDATE jobs SET status = jsonb_build_object('anchors', $2::text[]) WHERE uid = $1"


@asynccontextmanager
async def recording(
    harness: Harness, mode: QueueMode = QueueMode.AUTO, reserved: tuple[str, ...] = ()
) -> AsyncIterator[QueueRecorder]:
    context = replace(harness.context, settings=replace(harness.context.settings, reserved_namespaces=reserved))
    mirror = QueueMirror(
        context.api,
        harness.installation,
        harness.clock,
        mode=mode,
        namespaces=(harness.namespace,),
        reflect=lambda source, sink: Reflector(source, sink, harness.clock),
        on_change=ignore,
        on_state=lambda: None,
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(mirror.run())
        yield QueueRecorder(context, harness.leadership, mirror, lambda _: None)
        task.cancel()


async def until_row(
    harness: Harness, recorder: QueueRecorder, name: str, wanted: Callable[[QueueRow], object] = bool
) -> QueueRow:
    """The row of a queue, once it is as wanted."""

    async def read() -> QueueRow | None:
        await recorder.record()
        return (await queues.read(harness.db, harness.namespace, [name])).get(name)

    found = await until(read, lambda row: row is not None and wanted(row), within=WITHIN)
    assert found is not None
    return found


async def until_gone(harness: Harness, recorder: QueueRecorder, key: QueueKey) -> None:
    async def is_gone() -> bool:
        await recorder.record()
        return not await queues.read(harness.db, key.namespace, [key.name])

    await until(is_gone, within=WITHIN)


async def until_state(
    harness: Harness,
    recorder: QueueRecorder,
    state: KueueState,
    accept: Callable[[KueueRecord], bool] = lambda _: True,
) -> KueueRecord:
    async def read() -> KueueRecord | None:
        await recorder.record()
        return await queues.read_kueue(harness.db)

    found = await until(read, lambda known: known.state is state and accept(known), within=WITHIN)
    assert found is not None
    return found


async def submit(harness: Harness, made: Queues, name: str, **spec: int) -> str:
    """Create a job of this installation with its anchor and Workload, and return the name of the Workload."""
    uid = await harness.submit(name)
    owners = await harness.make_anchor(uid)
    async with harness.db.begin() as connection:
        await connection.execute(_STORE_ANCHOR, uid, [owners[0]["uid"]])
    return await post_workload(harness, made, uid, owners, **spec)


async def post_workload(harness: Harness, made: Queues, uid: UUID, owners: list[dict[str, Any]], **spec: int) -> str:
    """Create a Workload with the name and labels of the job, which these objects own."""
    body = workload(f"jobgate-{uid}", "team", **spec)
    body["metadata"] |= {"labels": harness.labels(uid), "ownerReferences": owners}
    (await harness.kube.post(made.workloads, body)).ok()
    return str(body["metadata"]["name"])


async def test_a_queue_is_recorded_with_the_jobs_that_wait(harness: Harness) -> None:
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await made.add_flavor("big")
        await made.add_queue("team", {"big": {"cpu": "1"}}, preemption="Never")
        row = await until_row(harness, recorder, "team", lambda row: row.status.active)
        quota = FlavorQuota(flavor=made.wide("big"), resource="cpu", nominal="1", used="0", used_by_queue="0")
        assert row.status == QueueStatus(cluster_queue=made.wide("team"), active=True, quotas=(quota,))

        await made.admitted(await submit(harness, made, "first"))
        await submit(harness, made, "second")
        await submit(harness, made, "urgent", priority=5)
        # It belongs to no job of this installation.
        await made.submit("foreign", "team")

        def is_full(row: QueueRow) -> bool:
            codes = {job.code for job in row.status.jobs}
            return (row.status.pending, row.status.queued, codes) == (3, 2, {PendingCode.WAITING_FOR_QUOTA})

        row = await until_row(harness, recorder, "team", is_full)
        assert [(job.name, job.kind, job.priority) for job in row.status.jobs] == [
            ("urgent", "GenericJob", 5),
            ("second", "GenericJob", 0),
        ]
        # Others may be between them. Those that queued in the same second have any order.
        (first, last) = [job.position for job in row.status.jobs]
        assert first == 1
        assert last in (2, 3)
        assert row.status.quotas == (replace(quota, used="1", used_by_queue="1"),)
        assert row.status.admitted == 1

        # Nothing is written while nothing changes.
        before = await until_row(harness, recorder, "team")
        await recorder.record()
        assert (await queues.read(harness.db, harness.namespace, ["team"]))["team"] == before

        # A row that another loop has deleted is written again.
        async with harness.db.begin() as connection:
            await queues.forget_namespace(connection, harness.namespace)
        await recorder.record()
        assert (await queues.read(harness.db, harness.namespace, ["team"]))["team"].status == before.status

        (await harness.kube.delete(f"{made.local_queues}/team")).ok()
        await until_gone(harness, recorder, QueueKey(harness.namespace, "team"))


async def test_a_round_records_all_queues_that_have_changed(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.loops.queues.recorder._MOST_ROWS", 2)
    names = [f"team-{number}" for number in range(5)]
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        for name in names:
            await made.add_local_queue(name, "none")
        for name in names:
            await until_row(harness, recorder, name)
        for kept in (0, 1, 3):
            async with harness.db.begin() as connection:
                await connection.execute("DELETE FROM queues WHERE name >= $1", f"team-{kept}")
            await recorder.record()
            assert (await queues.read(harness.db, harness.namespace, names)).keys() == set(names)


async def test_the_jobs_of_queues_are_counted_while_the_controller_records_them(harness: Harness) -> None:
    labels = {"namespace": harness.namespace, "queue": "team"}

    async def are_counted() -> bool:
        pending, admitted = (value("jobgate_queue_jobs", **labels, state=state) for state in ("pending", "admitted"))
        return (pending, admitted) == (1, 1)

    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await made.add_flavor("big")
        await made.add_queue("team", {"big": {"cpu": "1"}}, preemption="Never")
        await made.admitted(await submit(harness, made, "first"))
        await submit(harness, made, "second")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(recorder.run())
            await until(are_counted, within=WITHIN)
            task.cancel()
    assert value("jobgate_queue_jobs", **labels, state="pending") == 0


@pytest.mark.parametrize("status", [403, 503])
async def test_without_the_answer_of_kueue_places_are_unknown_for_a_while(harness: Harness, status: int) -> None:
    await harness.inject(namespace="", verb="get", resource="clusterqueues", status=status)
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await made.add_flavor("big")
        await made.add_queue("team", {"big": {"cpu": "1"}}, preemption="Never")
        await made.admitted(await submit(harness, made, "first"))
        await submit(harness, made, "second", priority=1)
        await submit(harness, made, "third")
        row = await until_row(harness, recorder, "team", lambda row: row.status.queued == 2)
        assert [(job.name, job.position) for job in row.status.jobs] == [("second", None), ("third", None)]
        await harness.heal()
        await recorder.record()
        row = await until_row(harness, recorder, "team")
        assert [job.position for job in row.status.jobs] == [None, None]
        harness.clock.skip(31)
        row = await until_row(harness, recorder, "team", lambda row: row.status.jobs[1].position is not None)
        assert [job.position for job in row.status.jobs] == [1, 2]


async def test_a_queue_without_its_cluster_queue_is_recorded_and_asks_for_no_place(harness: Harness) -> None:
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await made.add_local_queue("team", "none")
        await submit(harness, made, "first")
        row = await until_row(harness, recorder, "team", lambda row: row.status.queued == 1)
        assert (row.status.cluster_queue, row.status.quotas, row.status.active) == (made.wide("none"), (), False)
        assert row.status.jobs[0].position is None


def shown(row: QueueRow) -> tuple[int, list[tuple[str, str]]]:
    """How many jobs wait, and their names and kinds. Kueue may not have written yet why they wait."""
    return row.status.queued, [(job.name, job.kind) for job in row.status.jobs]


async def test_only_the_workloads_that_jobs_own_are_recorded(harness: Harness) -> None:
    """Another client with rights on Workloads writes any name and label, and any owner that it may refer to."""
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await made.add_local_queue("team", "none")
        # The job exists, and waits for nothing: the name of its Workload is free.
        job = await harness.submit("other")
        await post_workload(harness, made, job, await harness.make_anchor(job))
        unowned = await harness.submit("unowned")
        await post_workload(harness, made, unowned, [])
        unknown = uuid4()
        await post_workload(harness, made, unknown, await harness.make_anchor(unknown))
        first = await submit(harness, made, "first")  # the watch shows it after the others
        row = await until_row(harness, recorder, "team", lambda row: row.status.queued)
        assert shown(row) == (1, [("first", "GenericJob")])

        # Labels change nothing, and another owner ends the proof.
        for labels in ({"jobgate.dev/kind": "Forged"}, {"app.kubernetes.io/instance": "forged"}):
            (await harness.kube.patch(f"{made.workloads}/{first}", {"metadata": {"labels": labels}})).ok()
        await recorder.record()
        assert shown(await until_row(harness, recorder, "team")) == shown(row)
        (await harness.kube.patch(f"{made.workloads}/{first}", {"metadata": {"ownerReferences": []}})).ok()
        await until_row(harness, recorder, "team", lambda row: not row.status.queued)


async def test_queues_of_a_former_controller_are_forgotten(harness: Harness) -> None:
    await queues.write(harness.db, harness.leadership.lease, KueueRecord(state=KueueState.LISTED), [OLD])
    async with recording(harness) as recorder:
        await until_gone(harness, recorder, OLD_KEY)


async def test_queues_of_reserved_namespaces_are_not_recorded(harness: Harness) -> None:
    async with queues_of(harness.kube, harness.namespace) as made:
        await made.add_flavor("big")
        await made.add_queue("team", {"big": {"cpu": "1"}})
        await harness.kube.eventually(f"{made.local_queues}/team", holds("Active"))
        # The mirror begins afterwards, so its first list has the queue.
        async with recording(harness, reserved=(harness.namespace,)) as recorder:
            await until_state(harness, recorder, KueueState.LISTED)
            assert await queues.read_all(harness.db) == []


async def test_what_cannot_be_read_is_said_and_keeps_its_rows(harness: Harness) -> None:
    await queues.write(harness.db, harness.leadership.lease, KueueRecord(state=KueueState.LISTED), [OLD])
    # The API server names whom it refuses and where.
    await harness.inject(
        verb="list",
        resource="localqueues",
        status=403,
        message='no list in the namespace "private"',
    )
    async with recording(harness) as recorder:
        known = await until_state(harness, recorder, KueueState.DENIED)
        assert known.message == "the list of LocalQueues: 403 Forbidden"
        assert await queues.read_all(harness.db) == [OLD]
        await harness.heal()
        await until_gone(harness, recorder, OLD_KEY)
        assert (await until_state(harness, recorder, KueueState.LISTED)).observed_at is not None


async def test_what_a_cohort_lends_is_recorded(harness: Harness) -> None:
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await made.add_flavor("big")
        cohort = made.wide("cohort")
        # No LocalQueue of a served namespace has it, and it lends.
        await made.add_queue("other", {"big": {"cpu": "8"}}, cohortName=cohort)
        (await harness.kube.delete(f"{made.local_queues}/other")).ok()
        await made.add_queue("team", {"big": {"cpu": "4"}}, cohortName=cohort)
        row = await until_row(harness, recorder, "team", lambda row: row.status.cohort and row.status.quotas)
        (quota,) = row.status.quotas
        assert (quota.nominal, quota.cohort_free, quota.cohort_most) == ("4", "12", "12")


async def test_cohorts_count_with_their_own_quota(harness: Harness) -> None:
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await made.add_flavor("big")
        await made.add_cohort("top", {"big": {"cpu": "3"}})
        await made.add_cohort("all", {"big": {"cpu": "2"}}, parentName=made.wide("top"))
        await made.add_queue("team", {"big": {"cpu": "4"}}, cohortName=made.wide("all"))
        await until_row(harness, recorder, "team", lambda row: _shares(row) == [("9", "9")])
        (await harness.kube.patch(made.cohort("all"), {"spec": {"parentName": None}})).ok()
        await until_row(harness, recorder, "team", lambda row: _shares(row) == [("6", "6")])


async def test_without_the_right_to_cohorts_what_they_lend_is_unknown(harness: Harness) -> None:
    await harness.inject(namespace="", verb="list", resource="cohorts", status=403)
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await made.add_flavor("big")
        await made.add_queue("team", {"big": {"cpu": "4"}}, cohortName=made.wide("all"))
        row = await until_row(harness, recorder, "team", lambda row: row.status.quotas)
        assert ([quota.nominal for quota in row.status.quotas], _shares(row)) == (["4"], [(None, None)])
        known = await until_state(harness, recorder, KueueState.LISTED)
        assert known.message.startswith("jobgate cannot read Cohorts: ")
        await harness.heal()
        await until_row(harness, recorder, "team", lambda row: _shares(row) == [("4", "4")])
        assert (await until_state(harness, recorder, KueueState.LISTED)).message == ""


def _shares(row: QueueRow) -> list[tuple[str | None, str | None]]:
    return [(quota.cohort_free, quota.cohort_most) for quota in row.status.quotas]


async def test_a_kueue_that_is_removed_is_absent_and_may_come_back(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, serves = harness.context.api, asyncio.Event()
    serves.set()
    read = api.get_raw

    async def get_raw(path: str, timeout: float | None = None) -> dict[str, Any]:
        if "kueue" in path and not serves.is_set():
            raise KubeNotFound(404, "NotFound", path)
        return await read(path, timeout)

    monkeypatch.setattr(api, "get_raw", get_raw)
    monkeypatch.setattr(mirrored, "DISCOVER_EVERY", 0.2)
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await made.add_flavor("big")
        await made.add_queue("team", {"big": {"cpu": "4"}})
        await until_row(harness, recorder, "team")
        await until(partial(until_state, harness, recorder, KueueState.LISTED), lambda known: known.most_pod_sets == 18)

        serves.clear()
        await until_gone(harness, recorder, QueueKey(harness.namespace, "team"))
        known = await until_state(harness, recorder, KueueState.ABSENT)
        assert known.message == "the cluster does not serve kueue.x-k8s.io/v1beta2"

        serves.set()
        await until_state(harness, recorder, KueueState.LISTED)
        await until_row(harness, recorder, "team", lambda row: row.status.active)


async def test_without_the_right_to_cluster_queues_only_their_quota_is_unknown(harness: Harness) -> None:
    await harness.inject(namespace="", verb="list", resource="clusterqueues", status=403)
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await made.add_flavor("big")
        await made.add_queue("team", {"big": {"cpu": "1"}})
        row = await until_row(harness, recorder, "team", lambda row: row.status.active)
        assert row.status.quotas == (FlavorQuota(flavor=made.wide("big"), resource="cpu", used_by_queue="0"),)
        known = await until_state(harness, recorder, KueueState.LISTED)
        assert known.message.startswith("jobgate cannot read ClusterQueues: ")
        await harness.heal()
        row = await until_row(harness, recorder, "team", lambda row: row.status.quotas[0].nominal is not None)
        assert (await until_state(harness, recorder, KueueState.LISTED)).message == ""


async def test_a_right_that_is_withdrawn_is_named(harness: Harness, logged: Logged) -> None:
    await harness.inject(verb="watch", resource="localqueues", cutAfter=1, count=1)
    async with queues_of(harness.kube, harness.namespace) as made, recording(harness) as recorder:
        await until_state(harness, recorder, KueueState.LISTED)
        for verb in ("list", "watch"):
            await harness.inject(verb=verb, resource="localqueues", status=403, message='no right in "private"')
        await made.add_flavor("big")
        await made.add_queue("team", {"big": {"cpu": "1"}})
        known = await until_state(harness, recorder, KueueState.LISTED, lambda known: "403" in known.message)
        assert known.message == "jobgate cannot read LocalQueues: 403 Forbidden"
        assert '403 Forbidden: no right in "private"' in logged.texts("queues.watch_failed")
        await harness.heal()
        await until_state(harness, recorder, KueueState.LISTED, lambda known: not known.message)


async def test_queues_are_forgotten_when_they_are_off(harness: Harness) -> None:
    await queues.write(harness.db, harness.leadership.lease, KueueRecord(state=KueueState.LISTED), [OLD])
    async with recording(harness, mode=QueueMode.OFF) as recorder:
        known = await until_state(harness, recorder, KueueState.ABSENT)
        assert (known.message, await queues.read_all(harness.db)) == ("JOBGATE_QUEUES is off", [])
