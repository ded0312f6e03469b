"""What the controller finds to do for samples, and what of its conclusions is kept."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.db.feed import entries
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.objects import resources
from app.db.postgres.engine import Database
from app.db.postgres.errors import LeaseLost
from app.db.samples import controller as sample_controller
from app.db.samples import edits
from app.db.samples.edits import SampleEdit
from app.db.samples.rows import record_document, record_from, sample_events
from app.domain.access.actors import CONTROLLER, Actor
from app.domain.cache.reconcile.cache_status import CacheStatus, CacheSummary
from app.domain.cache.reconcile.values import Complaint, JobRecord, RuntimeStatus, SampleEvent, SetRecord
from app.domain.cache.vocabulary import RemovalStage, SampleEventType, SampleJobPhase, SetPart, SetPhase
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.vocabulary import ConditionType
from tests.db.factories import NOW, later
from tests.db.samples.factories import NAMESPACE, SETS, a_pass, new_job, new_set, stored, there

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
numbers = st.integers(0, 2**62)
maybe_complaints = st.none() | st.builds(Complaint, reason=texts, message=texts)
caches = st.builds(
    CacheSummary, status=st.builds(CacheStatus, total_size=texts), total_bytes=numbers, cached_bytes=numbers
)
set_records = st.builds(
    SetRecord,
    phase=st.sampled_from(SetPhase),
    sync_job=texts,
    digest=texts,
    synced=st.booleans(),
    cache=st.none() | caches,
    runtime=st.builds(RuntimeStatus, spec_replicas=numbers, ready_replicas=numbers),
    made=st.frozensets(st.sampled_from(SetPart)),
    complaint=maybe_complaints,
    delays=numbers,
    stage=st.none() | st.sampled_from(RemovalStage),
)
job_records = st.builds(
    JobRecord,
    phase=st.sampled_from(SampleJobPhase),
    job=texts,
    digest=texts,
    servers=st.lists(st.integers(0, 99), max_size=4).map(tuple),
    set_uid=texts,
    message=texts,
    complaint=maybe_complaints,
)
WHOLE = SetRecord(
    phase=SetPhase.SYNCING,
    sync_job="9d0f",
    digest="abc",
    synced=True,
    cache=CacheSummary(status=CacheStatus(total_size="1.5 GiB"), total_bytes=1_610_612_736, cached_bytes=5),
    runtime=RuntimeStatus(spec_replicas=2, ready_replicas=1),
    made=frozenset({SetPart.PV, SetPart.PVC, SetPart.TOKEN}),
    complaint=Complaint(reason="ErrorSecretNotExist", message="secret s is not exist"),
    delays=3,
)
EVENT = SampleEvent(type=SampleEventType.NORMAL, reason="CreatePVSuccessfully", message="the PV has been created")


@given(record=set_records | job_records)
def test_a_record_comes_back_from_json_as_it_was(record: SetRecord | JobRecord) -> None:
    kind = SAMPLE_SET.name if isinstance(record, SetRecord) else SAMPLE_JOB.name
    text = msgspec.json.encode(record_document(record))
    assert record_from(kind, msgspec.json.decode(text)) == record
    assert record_document(record) == record_document(record_from(kind, msgspec.json.decode(text)))


@pytest.mark.parametrize("record", [SetRecord(), JobRecord()], ids=["set", "job"])
def test_what_an_older_version_did_not_write_has_its_default(record: SetRecord | JobRecord) -> None:
    kind = SAMPLE_SET.name if isinstance(record, SetRecord) else SAMPLE_JOB.name
    assert record_from(kind, {}) == record


def uids(found: list[sample_controller.LiveSample]) -> list[UUID]:
    return [one.uid for one in found]


async def persisted(db: Database, lease: Lease, uid: UUID, now: datetime = NOW, **changes: Any) -> bool:
    return await sample_controller.persist(db, lease, a_pass(await there(db, uid), **changes), now)


async def versions(db: Database) -> list[tuple[str, UUID, int]]:
    while await entries.publish(db):
        pass
    return [(event.type, event.job_uid, event.version) for event in (await entries.read(db, 0, 1000)).events]


async def test_every_field_of_a_decision_is_stored(db: Database, lease: Lease) -> None:
    row = await stored(db, new_set())
    done = a_pass(
        row,
        record=WHOLE,
        reason="Syncing",
        message="the data is being synced",
        events=[EVENT, replace(EVENT, reason="CreatePVCSuccessfully")],
        wake_at=later(5),
        observed_at=later(1),
        cache_observed_at=later(2),
    )
    assert await sample_controller.persist(db, lease, done, later(3))
    after = await there(db, row.uid)
    assert (after.phase, after.reason, after.message, after.record) == (
        "Syncing",
        "Syncing",
        "the data is being synced",
        WHOLE,
    )
    assert (after.observed_at, after.cache_observed_at, after.observed_generation) == (later(1), later(2), 1)
    assert (after.version, after.intent_version, after.history_count, after.event_count) == (2, 1, 2, 2)
    (line,) = await resources.history(db, SETS, row.uid, after_seq=1, limit=9)
    entry = line.entry
    said = (line.seq, entry.at, entry.phase, entry.reason, entry.actor)
    assert said == (2, later(3), "Syncing", "Syncing", CONTROLLER)
    events = await sample_events(db, row.uid, limit=9)
    assert [(event.seq, event.at, event.type, event.reason) for event in events] == [
        (1, later(3), "Normal", "CreatePVSuccessfully"),
        (2, later(3), "Normal", "CreatePVCSuccessfully"),
    ]
    assert await versions(db) == [("created", row.uid, 1), ("status", row.uid, 2)]


@pytest.mark.parametrize(
    ("changes", "version", "lines"),
    [
        ({}, 2, 2),
        ({"observed_at": later(9), "cache_observed_at": later(9), "wake_at": later(20)}, 2, 2),
        ({"message": "another"}, 3, 3),
        ({"reason": "Other"}, 3, 3),
        ({"record": replace(WHOLE, phase=SetPhase.MOUNT)}, 3, 3),
        ({"record": replace(WHOLE, delays=4)}, 3, 2),
        ({"events": [EVENT]}, 3, 2),
    ],
    ids=["nothing", "only when it looked", "a message", "a reason", "a phase", "only the record", "an event"],
)
async def test_only_readable_changes_have_feed_entries(
    db: Database, lease: Lease, changes: dict[str, Any], version: int, lines: int
) -> None:
    row = await stored(db, new_set())
    assert await persisted(db, lease, row.uid, record=WHOLE, observed_at=later(1), cache_observed_at=later(1))
    assert await persisted(db, lease, row.uid, **changes)
    after = await there(db, row.uid)
    assert (after.version, after.history_count, len(await versions(db))) == (version, lines, version)
    assert len(await resources.history(db, SETS, row.uid, limit=9)) == lines
    assert after.observed_at == changes.get("observed_at", later(1))
    assert after.cache_observed_at == changes.get("cache_observed_at", later(1))


async def test_a_decision_on_an_older_intent_is_rejected(db: Database, lease: Lease) -> None:
    row = await stored(db, new_set())
    spec = {**row.manifest["spec"], "partitions": 2}
    change = SampleEdit(
        manifest={**row.manifest, "spec": spec},
        labels={},
        set_name=row.set_name,
        actor=Actor("bob"),
        at=later(1),
        expected_version=row.version,
    )
    edited = await edits.edit(db, row.uid, change)
    assert not await sample_controller.persist(db, lease, a_pass(row, record=WHOLE, events=[EVENT]), later(2))
    assert await there(db, row.uid) == edited
    assert await sample_events(db, row.uid, limit=9) == []
    assert uids(await sample_controller.read_pending_intents(db, 9)) == [row.uid]
    assert await sample_controller.persist(db, lease, a_pass(edited), later(2))
    assert (await there(db, row.uid)).observed_generation == 2
    assert await sample_controller.read_pending_intents(db, 9) == []


async def test_a_former_controller_writes_nothing(db: Database, lease: Lease) -> None:
    row = await stored(db, new_set())
    await leases.release(db, lease)
    other = await leases.acquire(db, lease.name, "other", ttl=60)
    assert other is not None
    with pytest.raises(LeaseLost):
        await sample_controller.persist(db, lease, a_pass(row, record=WHOLE), NOW)
    assert await there(db, row.uid) == row
    assert await sample_controller.persist(db, other, a_pass(row, record=WHOLE), NOW)


async def test_the_name_of_a_set_is_free_when_its_last_object_is_gone(db: Database, lease: Lease) -> None:
    row = await stored(db, new_set())
    leaving = await edits.request_deletion(db, row.uid, actor=Actor("bob"), at=later(1))
    assert await sample_controller.load(db, row.uid) == leaving
    gone = replace(WHOLE, stage=RemovalStage.GONE)
    assert await persisted(db, lease, row.uid, later(9), record=gone, gone=True, wake_at=later(10))
    after = await there(db, row.uid)
    assert (after.gone_at, after.version, after.history_count) == (later(9), 3, 3)
    assert (await versions(db))[-1] == ("status", row.uid, 3)
    assert await sample_controller.load(db, row.uid) is None
    assert not await persisted(db, lease, row.uid, record=WHOLE)
    assert await sample_controller.read_overdue(db, later(99), 9) == []
    assert await sample_controller.read_live(db) == []
    await stored(db, new_set())


async def test_a_decision_on_a_job_that_was_deleted_since_is_rejected(db: Database, lease: Lease) -> None:
    row = await stored(db, new_job())
    await edits.request_deletion(db, row.uid, actor=Actor("bob"), at=later(1))
    record = JobRecord(phase=SampleJobPhase.RUNNING)
    assert not await sample_controller.persist(db, lease, a_pass(row, record=record), later(2))
    assert await sample_controller.read_pending_intents(db, 9) == []


@pytest.mark.parametrize(
    ("phase", "started", "ended", "reason", "running"),
    [
        (SampleJobPhase.NONE, None, None, "Deleted", None),
        (SampleJobPhase.PENDING, later(2), later(9), "Deleted", None),
        (SampleJobPhase.RUNNING, later(2), later(9), "Deleted", ("False", "Deleted", later(9))),
        (SampleJobPhase.SUCCEEDED, later(2), later(2), "", ("False", "Succeeded", later(2))),
        (SampleJobPhase.FAILED, later(2), later(2), "", ("False", "Failed", later(2))),
    ],
    ids=str,
)
async def test_a_job_that_is_deleted_in_any_phase_has_ended(
    phase: SampleJobPhase, started: Any, ended: Any, reason: str, running: Any, db: Database, lease: Lease
) -> None:
    row = await stored(db, new_job())
    assert await persisted(db, lease, row.uid, later(2), record=JobRecord(phase=phase))
    after = await edits.request_deletion(db, row.uid, actor=Actor("bob"), at=later(9))
    assert after == await there(db, row.uid)
    assert (after.status.started_at, after.status.finished_at, after.reason) == (started, ended, reason)
    found = [one for one in after.status.conditions if one.type is ConditionType.RUNNING]
    assert [(one.status, one.reason, one.last_transition_at) for one in found] == ([running] if running else [])


async def test_live_pending_and_due_samples_are_found(db: Database, lease: Lease) -> None:
    row, job = await stored(db, new_set()), await stored(db, new_job(created_at=later(1)))
    both = [(row.uid, NAMESPACE), (job.uid, NAMESPACE)]
    assert await sample_controller.read_pending_intents(db, 9) == both
    assert await sample_controller.read_pending_intents(db, 1) == both[:1]
    assert sorted(await sample_controller.read_live(db)) == sorted(both)
    assert await persisted(db, lease, row.uid, record=WHOLE, wake_at=later(5))
    assert await persisted(db, lease, job.uid, record=JobRecord(phase=SampleJobPhase.FAILED), wake_at=later(4))
    assert await sample_controller.read_pending_intents(db, 9) == []
    assert await sample_controller.read_overdue(db, later(3), 9) == []
    assert uids(await sample_controller.read_overdue(db, later(5), 9)) == [job.uid, row.uid]
    assert await persisted(db, lease, job.uid, record=JobRecord(phase=SampleJobPhase.SUCCEEDED))
    assert uids(await sample_controller.read_live(db)) == [row.uid]
    assert uids(await sample_controller.read_overdue(db, later(9), 9)) == [row.uid]


async def test_a_set_and_its_jobs_find_each_other(db: Database, lease: Lease) -> None:
    row = await stored(db, new_set())
    wanted = await stored(db, new_job("first"))
    failed = await stored(db, new_job("second", created_at=later(1)))
    over = await stored(db, new_job("third"))
    left = await stored(db, new_job("fourth"))
    await stored(db, new_job("fifth", "another"))
    await stored(db, new_job("first", namespace="team-b"))
    assert await persisted(db, lease, failed.uid, record=JobRecord(phase=SampleJobPhase.FAILED))
    assert await persisted(db, lease, over.uid, record=JobRecord(phase=SampleJobPhase.SUCCEEDED))
    await edits.request_deletion(db, left.uid, actor=Actor("bob"), at=later(1))
    assert await sample_controller.jobs_of_set(db, NAMESPACE, "imagenet") == [wanted.uid, failed.uid]
    assert await sample_controller.live_set(db, NAMESPACE, "imagenet") == row
    assert await sample_controller.live_set(db, NAMESPACE, "first") is None
    leaving = await edits.request_deletion(db, row.uid, actor=Actor("bob"), at=later(1))
    assert await sample_controller.live_set(db, NAMESPACE, "imagenet") == leaving
    assert await sample_controller.load(db, uuid4()) is None
