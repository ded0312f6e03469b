"""Secrets of SampleSets and SampleJobs: errors do not repeat keys, and views do not contain the digest of keys."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.answers.errors import problem_of
from app.api.resources.samples import SampleResource
from app.db.samples.rows import SampleRow
from app.domain.cache.limits import CacheLimits
from app.domain.cache.reconcile.values import Complaint, JobRecord, SetRecord
from app.domain.cache.vocabulary import RemovalStage, SampleJobPhase, SetPhase
from app.domain.errors import InvalidManifest
from app.domain.kinds.sample_kind import SampleKind
from app.domain.kinds.sample_status import SampleStatus
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.domain.sample_drafts import make_draft
from app.domain.status.conditions import merge_conditions
from tests.domain.cache.made import a_job, a_set

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ACCESS_KEYS = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", min_size=12, max_size=20)
SECRET_KEYS = st.text("abcdefghijKLMNOPQRSTUVWXYZ+/", min_size=12, max_size=40).filter(lambda key: key[0].isalpha())
DIGEST = "digest-of-the-keys"


def a_row(record: SetRecord | JobRecord, **changes: Any) -> SampleRow:
    kind = SAMPLE_SET if isinstance(record, SetRecord) else SAMPLE_JOB
    manifest = a_set() if kind is SAMPLE_SET else a_job()
    values: dict[str, Any] = {
        "uid": UUID(int=1),
        "kind": kind.name,
        "namespace": "team",
        "name": "imagenet",
        "api_version": manifest["apiVersion"],
        "labels": {},
        "manifest": kind.accept(manifest, CacheLimits(namespace="team")),
        "set_name": "imagenet",
        "generation": 1,
        "version": 1,
        "intent_version": 1,
        "observed_generation": 1,
        "history_count": 1,
        "event_count": 0,
        "created_at": NOW,
        "created_by": "a test",
        "delete_requested_at": None,
        "gone_at": None,
        "phase": record.phase,
        "reason": record.complaint.reason if record.complaint else "",
        "message": record.complaint.message if record.complaint else "",
        "record": record,
        "status": SampleStatus(conditions=merge_conditions((), kind.conditions(record, ()), NOW, 1, followed=())),
        "observed_at": NOW,
        "cache_observed_at": None,
    }
    return SampleRow(**(values | changes))


COMPLAINTS = st.none() | st.builds(Complaint, reason=st.just("ErrorDoSyncJob"), message=st.text(max_size=20))
RECORDS = st.builds(
    SetRecord,
    phase=st.sampled_from(SetPhase),
    sync_job=st.sampled_from(["", "8c5f0e7a"]),
    digest=st.just(DIGEST),
    synced=st.booleans(),
    complaint=COMPLAINTS,
    stage=st.none() | st.sampled_from(RemovalStage),
) | st.builds(
    JobRecord,
    phase=st.sampled_from(SampleJobPhase),
    job=st.sampled_from(["", "8c5f0e7a"]),
    digest=st.just(DIGEST),
    message=st.text(max_size=20),
    complaint=COMPLAINTS,
)


@given(RECORDS)
def test_views_do_not_contain_the_digest_of_the_keys(record: SetRecord | JobRecord) -> None:
    row = a_row(record)
    resource = SampleResource(row.of_kind)
    message = record.complaint.message if record.complaint else ""
    for shown in (
        resource.view_of(row).model_dump_json(by_alias=True),
        resource.status_of(row).model_dump_json(by_alias=True),
    ):
        assert DIGEST not in shown
        status = json.loads(shown)["status"]
        assert (status["phase"], status["message"]) == (record.phase, message)


@pytest.mark.parametrize("kind", [SAMPLE_SET, SAMPLE_JOB], ids=["SampleSet", "SampleJob"])
@given(access=ACCESS_KEYS, secret=SECRET_KEYS, scheme=st.sampled_from(["s3", "oss", "minio", "redis"]))
def test_keys_in_a_source_are_refused_and_not_repeated(kind: SampleKind, access: str, secret: str, scheme: str) -> None:
    uri = f"{scheme}://{access}:{secret}@bucket.example.com/train"
    document = a_set(source={"uri": uri})
    if kind is SAMPLE_JOB:
        document = a_job("sync", secretRef={"name": "keys"}, syncOptions={"source": uri})
    with pytest.raises(InvalidManifest) as refused:
        make_draft(kind, document, "team", CacheLimits(namespace="team"), str)
    message_text = bytes(problem_of(refused.value).body).decode() + str(refused.value)
    assert access not in message_text
    assert secret not in message_text
