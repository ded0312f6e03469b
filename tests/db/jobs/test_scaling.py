"""Requests for another size, what the controller makes of them, and the names that a job needs to grow."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from app.db.feed import entries
from app.db.installation.leases import Lease
from app.db.jobs import controller, edits, reads, scale_records
from app.db.jobs.edits import JobEdit, set_reported
from app.db.jobs.rows import STORED_JOBS
from app.db.jobs.submit import submit
from app.db.objects import resources
from app.db.objects.submission import NameTaken
from app.db.postgres.engine import Database
from app.db.postgres.errors import NotStorable
from app.domain.access.actors import Actor
from app.domain.errors import Conflict, NotFound, PreconditionFailed
from app.domain.plan import Rank
from app.domain.reservations.name_ranges import NameKind, NameRange
from app.domain.resize import ScaleChange
from app.domain.status.records import JobStatus, ScaleRecord
from app.domain.vocabulary import JobPhase, ScaleOutcome
from tests.db.factories import decision, later, move, names_held, new_job, replica, stored, submitted

MORE = ScaleChange(task="worker", from_replicas=2, to_replicas=5, reason="more")


def edit(*scales: ScaleChange, names: Sequence[NameRange] = (), version: int | None = None) -> JobEdit:
    return JobEdit(
        namespace="team-a",
        manifest={"spec": 2},
        labels={},
        actor=Actor("bob"),
        at=later(5),
        scales=scales,
        names=names,
        expected_version=version,
    )


async def settle(db: Database, lease: Lease, uid: UUID, *records: ScaleRecord) -> None:
    done = replace(decision(JobStatus(phase=JobPhase.RUNNING)), scaled=records)
    assert await controller.persist(db, lease, [(await stored(db, uid)).write(done)]) == []


async def names(db: Database, uid: UUID) -> set[tuple[str, str]]:
    return {name for name, holder in (await names_held(db)).items() if holder == uid}


async def test_only_scale_records_without_an_outcome_are_loaded(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    assert (await stored(db, uid)).recorded.scaling == ()
    await edits.edit(db, uid, edit(MORE))
    await edits.edit(db, uid, edit(replace(MORE, task="ps")))
    first, second = (await stored(db, uid)).recorded.scaling
    assert (first.seq, first.task, second.seq, second.task) == (1, "worker", 2, "ps")
    settled = replace(first, settled_at=later(9), outcome=ScaleOutcome.REFUSED, message="no room")
    await settle(db, lease, uid, settled)
    assert (await stored(db, uid)).recorded.scaling == [second]
    assert await scale_records.page(db, uid, limit=10) == [settled, second]


async def test_records_of_several_jobs_are_read_at_once_the_newest_of_each(db: Database) -> None:
    busy, calm, still = await submitted(db, *(new_job(f"job-{n}", names=()) for n in range(3)))
    for _ in range(4):
        await edits.edit(db, busy, edit(MORE))
    await edits.edit(db, calm, edit(MORE))
    found = await scale_records.last_of(db, [busy, calm, still], 2)
    assert {uid: [one.seq for one in records] for uid, records in found.items()} == {busy: [3, 4], calm: [1]}
    whole = await reads.whole(db, calm)
    assert whole is not None
    assert (list(whole.scale_records), whole.row.scale_count) == (list(found[calm]), 1)


async def test_a_leaving_rank_keeps_its_row(db: Database, lease: Lease) -> None:
    (uid,) = await submitted(db, new_job())
    stays, leaves = replica("worker", 0), replica("worker", 1)
    await controller.persist(db, lease, [(await stored(db, uid)).write(decision(JobStatus(), changed=[stays, leaves]))])
    gone = replace(leaves, leaving=True)
    shrunk = replace(decision(JobStatus(), changed=[gone]), replicas={stays.key: stays, gone.key: gone})
    await controller.persist(db, lease, [(await stored(db, uid)).write(shrunk)])
    found = (await stored(db, uid)).recorded.replicas
    assert found == {Rank("worker", 0): stays, Rank("worker", 1): gone}


async def test_of_two_scales_on_one_version_the_second_decides_again(db: Database) -> None:
    (uid,) = await submitted(db, new_job())
    answers = await asyncio.gather(
        *(edits.edit(db, uid, edit(MORE, version=1)) for _ in range(4)), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["JobRow", *["PreconditionFailed"] * 3]
    assert len(await scale_records.page(db, uid, limit=10)) == 1


async def test_scaling_up_reserves_the_names_that_it_may_use(db: Database) -> None:
    (uid,) = await submitted(db, new_job())
    more = [
        NameRange("pod", "train-worker-1"),
        NameRange("pod", "train-worker-2"),
        NameRange("configmap", "train-hosts"),
        NameRange("job", "train"),
    ]
    for _ in range(2):
        await edits.edit(db, uid, edit(MORE, names=more))
    assert {(one.kind, one.name) for one in more} <= await names(db, uid)
    answer = (await submit(db, [new_job("other", names=(NameRange("pod", "train-worker-2"),))]))[0]
    assert answer == NameTaken(
        kind=NameKind.POD, name="train-worker-2", holder_name="train", holder_uid=uid, holder_kind="live job"
    )


async def test_a_name_of_another_live_job_refuses_the_edit_whole(db: Database) -> None:
    job, holder = new_job(), new_job("holder", names=(NameRange("pod", "train-worker-7"),))
    await submitted(db, job, holder)
    before, held = await resources.get(db, STORED_JOBS, job.uid), await names(db, job.uid)
    with pytest.raises(Conflict) as refused:
        await edits.edit(
            db, job.uid, edit(MORE, names=[NameRange("pod", "train-worker-6"), NameRange("pod", "train-worker-7")])
        )
    assert refused.value.code == "NameTaken"
    assert f"holder ({holder.uid})" in refused.value.errors[0].detail
    assert (await resources.get(db, STORED_JOBS, job.uid), await names(db, job.uid)) == (before, held)
    assert await scale_records.page(db, job.uid, limit=10) == []


@pytest.mark.parametrize(("phase", "refusal"), [(None, PreconditionFailed), (JobPhase.FAILED, Conflict)])
async def test_a_refused_edit_reserves_no_names(
    db: Database, lease: Lease, phase: JobPhase | None, refusal: type[Exception]
) -> None:
    (uid,) = await submitted(db, new_job())
    if phase is not None:
        await move(db, lease, uid, phase)
    held = await names(db, uid)
    change = edit(
        MORE, names=[NameRange("pod", "train-worker-0"), NameRange("pod", "new")], version=None if phase else 7
    )
    with pytest.raises(refusal):
        await edits.edit(db, uid, change)
    assert await names(db, uid) == held


async def test_two_jobs_that_scale_up_into_each_others_names_do_not_deadlock(db: Database) -> None:
    first, second = await submitted(db, new_job("a", names=()), new_job("b", names=()))
    wanted = [NameRange("pod", f"shared-{n}") for n in range(20)]
    answers = await asyncio.gather(
        edits.edit(db, first, edit(MORE, names=wanted)),
        edits.edit(db, second, edit(MORE, names=wanted[::-1])),
        return_exceptions=True,
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["Conflict", "JobRow"]


async def test_scaling_up_requests_the_removal_of_finished_jobs_with_its_names(db: Database, lease: Lease) -> None:
    old, grows = new_job("old", names=(NameRange("pod", "train-worker-2"),)), new_job()
    await submitted(db, old, grows)
    await move(db, lease, old.uid, JobPhase.SUCCEEDED)
    await edits.edit(db, grows.uid, edit(MORE, names=[NameRange("pod", "train-worker-2")]))
    row = await resources.get(db, STORED_JOBS, old.uid)
    assert row is not None
    assert row.remove_requested_at is not None


async def test_a_repeated_report_of_pods_changes_nothing(db: Database) -> None:
    (uid,) = await submitted(db, new_job())
    assert [await set_reported(db, uid, value) for value in ({"gpu": 1}, {"gpu": 1}, {})] == [True, False, True]
    await entries.publish(db)
    row = await resources.get(db, STORED_JOBS, uid)
    assert row is not None
    assert (row.reported, row.version) == ({}, 3)
    seen = [(event.type, event.version) for event in (await entries.read(db, 0, 10)).events]
    assert seen == [("created", 1), ("status", 2), ("status", 3)]
    with pytest.raises(NotFound):
        await set_reported(db, uuid4(), {})
    with pytest.raises(NotStorable):
        await set_reported(db, uid, {"a": "\0"})
    assert (await stored(db, uid)).status_version == 0, "a concurrent decision stays valid"
