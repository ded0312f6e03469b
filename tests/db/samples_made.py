"""SampleSets and SampleJobs to write, and the passes of a controller."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from app.db import samples
from app.db.engine import Database
from app.db.sample_controller import SamplePass
from app.db.sample_rows import SampleRow
from app.db.samples import NewSample
from app.db.submit import Submitted
from app.domain.cache.kinds import CACHE_KINDS, SAMPLE_JOB, SAMPLE_SET
from app.domain.cache.specs.sample_set import API_VERSION
from tests.db.factories import NOW

NAMESPACE = "team-a"


def new_set(name: str = "imagenet", **changes: Any) -> NewSample:
    spec = {"partitions": 1, "secretRef": {"name": "storage"}, "noSync": True}
    return _new(SAMPLE_SET.kind, name, spec, changes)


def new_job(name: str = "warm", set_name: str = "imagenet", **changes: Any) -> NewSample:
    return _new(SAMPLE_JOB.kind, name, {"type": "warmup", "sampleSetRef": {"name": set_name}}, changes)


def _new(kind: str, name: str, spec: Mapping[str, Any], changes: Mapping[str, Any]) -> NewSample:
    namespace = changes.get("namespace", NAMESPACE)
    manifest = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    new = NewSample(
        uid=uuid4(),
        kind=kind,
        namespace=namespace,
        name=name,
        api_version=API_VERSION,
        labels={"app": "demo"},
        manifest=manifest,
        set_name=CACHE_KINDS[kind].set_name(manifest),
        created_at=NOW,
        created_by="alice",
    )
    return replace(new, **changes)


async def stored(db: Database, new: NewSample) -> SampleRow:
    assert await samples.insert(db, new) == Submitted(uid=new.uid)
    return await there(db, new.uid)


async def there(db: Database, uid: UUID) -> SampleRow:
    row = await samples.get(db, uid)
    assert row is not None
    return row


def a_pass(row: SampleRow, **changes: Any) -> SamplePass:
    """One that concludes what is stored, but for the changes."""
    record = changes.pop("record", row.record)
    done = SamplePass(
        uid=row.uid,
        intent_version=row.intent_version,
        generation=row.generation,
        phase=record.phase,
        record=record,
        reason=row.reason,
        message=row.message,
    )
    return replace(done, **changes)
