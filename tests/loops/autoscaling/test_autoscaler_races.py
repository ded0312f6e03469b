"""People edit jobs while the autoscaler resizes them: their edit stands, whole, whenever it comes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from app.base.cancellation import TaskGroup
from app.db.installation import leases
from app.db.jobs import autoscaler_runs, edits
from app.db.jobs.rows import STORED_JOBS
from app.db.objects import resources
from app.db.postgres.engine import Database
from app.domain.access.actors import Actor
from app.domain.kinds.job_kind import Limits
from app.domain.kubernetes.objects import Node
from app.domain.manifests.rendered import pod_bytes
from app.domain.planning import Planner
from app.domain.reservations.pod_limits import DEFAULT_LIMITS, PodRoom
from app.domain.scaling.values import Verdict
from tests.db.factories import NOW
from tests.loops.autoscaling.stage import ON, Stage
from tests.support.kinds.elastic import ElasticKind, elastic_manifest
from tests.support.waiting import until

_OTHERS_WAIT = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"


async def test_an_edit_of_a_client_precedes_the_autoscaler(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = await stage.job("train")
    real = autoscaler_runs.apply

    async def apply(db: Database, lease: leases.Lease, job: UUID, change: edits.JobEdit, *limits: Any) -> None:
        mine = replace(change, manifest=elastic_manifest(size=2), actor=Actor("alice"), scales=())
        await edits.edit(db, job, mine)
        await real(db, lease, job, change, *limits)

    monkeypatch.setattr(autoscaler_runs, "apply", apply)
    run = await stage.autoscaler().run_once()
    assert await stage.size(uid) == 2
    assert not run.decisions[0].applied
    assert "changed since it was read" in run.decisions[0].refusal


async def relabel(stage: Stage, uid: UUID) -> None:
    await edits.edit(stage.db, uid, relabelling())


def relabelling() -> edits.JobEdit:
    manifest = elastic_manifest()
    manifest["metadata"]["labels"] = {"team": "b"}
    return edits.JobEdit(namespace="team-a", manifest=manifest, labels={"team": "b"}, actor=Actor("alice"), at=NOW)


@asynccontextmanager
async def relabelled_after_the_look(stage: Stage, uid: UUID, patch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Somebody edits the labels while the run reads the cluster."""
    real = stage.cluster.list_all

    async def list_all(resource: Any, **more: Any) -> list[Node]:
        await relabel(stage, uid)
        return await real(resource, **more)

    patch.setattr(stage.cluster, "list_all", list_all)
    yield


@asynccontextmanager
async def relabelled_after_the_manifest_was_read(
    stage: Stage, uid: UUID, patch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """Somebody edits the labels when the run has made the new manifest and not yet stored it."""
    real = autoscaler_runs.apply

    async def apply(*arguments: Any) -> None:
        await relabel(stage, uid)
        await real(*arguments)

    patch.setattr(autoscaler_runs, "apply", apply)
    yield


@asynccontextmanager
async def relabelled_in_a_transaction_that_is_open(
    stage: Stage, uid: UUID, _: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """Somebody's edit of the labels holds the row, and commits when the run waits for it."""
    async with TaskGroup() as group:
        held = asyncio.Event()
        group.create_task(_relabel_when_another_waits(stage, uid, held))
        await held.wait()
        yield


async def _relabel_when_another_waits(stage: Stage, uid: UUID, held: asyncio.Event) -> None:
    async with stage.db.begin() as connection:
        await edits.edit_in(connection, PodRoom(DEFAULT_LIMITS), uid, relabelling())
        held.set()
        await until(lambda: connection.fetchval(_OTHERS_WAIT), what="another transaction waits", within=120)


@pytest.mark.parametrize(
    "meanwhile",
    [
        relabelled_after_the_look,
        relabelled_after_the_manifest_was_read,
        relabelled_in_a_transaction_that_is_open,
    ],
)
async def test_an_edit_of_labels_during_a_run_is_kept_and_the_next_run_resizes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, meanwhile: Any
) -> None:
    uid = await stage.job("train")
    autoscaler = stage.autoscaler()
    with monkeypatch.context() as patch:
        async with meanwhile(stage, uid, patch):
            run = await autoscaler.run_once()
    assert not run.decisions[0].applied
    assert await labels_and_size(stage, uid) == ({"team": "b"}, {"team": "b"}, 1)
    assert (await autoscaler.run_once()).decisions[0].applied
    assert await labels_and_size(stage, uid) == ({"team": "b"}, {"team": "b"}, 3)


async def labels_and_size(stage: Stage, uid: UUID) -> tuple[Any, Any, int]:
    """The labels by which the job is listed, those of its manifest, and its size."""
    job = await resources.get(stage.db, STORED_JOBS, uid)
    assert job is not None
    return job.labels, job.manifest["metadata"]["labels"], job.manifest["spec"]["size"]


async def test_an_annotation_that_opts_out_is_respected_from_the_next_run_on(stage: Stage) -> None:
    uid = await stage.job("train")
    autoscaler = stage.autoscaler(replace(ON, max_load=0.0))
    assert (await autoscaler.run_once()).decisions[0].verdict is Verdict.CPU_AT_LOAD
    manifest = elastic_manifest(annotations={"jobgate.dev/autoscale": "false"})
    await edits.edit(
        stage.db, uid, edits.JobEdit(namespace="team-a", manifest=manifest, labels={}, actor=Actor("alice"), at=NOW)
    )
    assert (await autoscaler.run_once()).decisions[0].verdict is Verdict.OPTED_OUT


async def test_a_job_does_not_grow_beyond_the_limit_of_its_objects(stage: Stage) -> None:
    """The operator's limit of bytes bounds the memory of the API server, whoever resizes the job."""
    uid = await stage.job("train")
    now = Planner(installation="here").plan(ElasticKind().read(elastic_manifest()), str(uid))
    within = sum(pod_bytes(now)[task.name] * task.size for task in now.tasks) + 100
    run = await stage.autoscaler(limits=Limits(max_job_bytes=within)).run_once()
    assert await stage.size(uid) == 1
    assert (run.decisions[0].to_replicas, run.decisions[0].applied) == (3, False)
    assert "pods of the job would have" in run.decisions[0].refusal or "renders" in run.decisions[0].refusal
