"""SampleSets and SampleJobs to store, and decisions of a controller."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from app.db.objects import resources
from app.db.objects.idempotency import IdempotencyKey
from app.db.objects.submission import Answer, New
from app.db.postgres.engine import Database
from app.db.samples import edits
from app.db.samples.controller import SampleWrite
from app.db.samples.rows import SampleRow, storage_of
from app.domain.kinds.registry import SAMPLE_KINDS
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.kinds.samples.specs.sample_set import API_VERSION
from app.domain.reservations.name_ranges import NameKind, NameRange
from tests.db.factories import NOW

NAMESPACE = "team-a"
SETS = storage_of(SAMPLE_SET)
JOBS = storage_of(SAMPLE_JOB)


def new_set(name: str = "imagenet", **changes: Any) -> New[SampleRow]:
    spec = {"partitions": 1, "secretRef": {"name": "storage"}, "noSync": True}
    return _new(SAMPLE_SET.name, name, spec, changes)


def new_job(name: str = "warm", set_name: str = "imagenet", **changes: Any) -> New[SampleRow]:
    return _new(SAMPLE_JOB.name, name, {"type": "warmup", "sampleSetRef": {"name": set_name}}, changes)


def _new(kind: str, name: str, spec: Mapping[str, Any], changes: dict[str, Any]) -> New[SampleRow]:
    namespace = changes.get("namespace", NAMESPACE)
    manifest = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    record = SAMPLE_KINDS[kind].record()
    row = SampleRow(
        uid=uuid4(),
        kind=kind,
        namespace=namespace,
        name=name,
        api_version=API_VERSION,
        labels={"app": "demo"},
        manifest=manifest,
        set_name=SAMPLE_KINDS[kind].set_name(manifest),
        created_at=NOW,
        created_by="alice",
        phase=record.phase,
        record=record,
    )
    own = {"posted_manifest": changes.pop("posted_manifest")} if "posted_manifest" in changes else {}
    row = replace(row, **changes)
    return New(row=row, names=[NameRange(NameKind.JOB, row.name)], **own)


async def insert(db: Database, new: New[SampleRow], key: IdempotencyKey | None = None) -> Answer | None:
    """Submit a sample. Return the refusal, or None if it is stored."""
    return (await edits.submit(db, [replace(new, idempotency=key)])).get(0)


async def stored(db: Database, new: New[SampleRow]) -> SampleRow:
    assert await insert(db, new) is None
    return await there(db, new.uid)


async def there(db: Database, uid: UUID) -> SampleRow:
    row = await resources.get(db, SETS, uid) or await resources.get(db, JOBS, uid)
    assert row is not None
    return row


def a_pass(row: SampleRow, **changes: Any) -> SampleWrite:
    """Return a decision that keeps what is stored, except for the changes."""
    record = changes.pop("record", row.record)
    done = SampleWrite(
        uid=row.uid,
        intent_version=row.intent_version,
        generation=row.generation,
        phase=record.phase,
        record=record,
        reason=row.reason,
        message=row.message,
    )
    return replace(done, **changes)
