"""Views that are filled from a record by field name."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest

from app.api.rendering import replica_view
from app.api.views import AttemptView, ContainerView, PendingReasonView, ScaleRecordView, View
from app.db.jobs.replicas import StoredReplica
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, JobPendingReason, Replica, ScaleRecord
from app.services.reading import ReplicaHistory

AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("view", "record"),
    [
        (AttemptView, Attempt),
        (ContainerView, ObservedContainer),
        (PendingReasonView, JobPendingReason),
        (ScaleRecordView, ScaleRecord),
    ],
)
def test_every_field_of_the_view_is_a_field_of_the_record(view: type[View], record: type[Any]) -> None:
    assert set(view.model_fields) <= {field.name for field in fields(record)}


def test_a_scale_record_keeps_its_values() -> None:
    record = ScaleRecord(
        seq=3, task="worker", from_replicas=1, to_replicas=2, actor="a", reason="b", requested_at=AT, message="c"
    )
    view = ScaleRecordView.of(record)
    assert (view.seq, view.to_replicas, view.settled_at, view.message) == (3, 2, None, "c")
    assert view.model_dump(by_alias=True)["fromReplicas"] == 1


def test_attempts_keep_their_containers() -> None:
    container = ObservedContainer(name="main", state="terminated", exit_code=3)
    attempt = Attempt(number=1, pod_uid="p", pod_ip="10.0.0.1", containers=(container,))
    replica = Replica(key=Rank("worker", 0), attempt=attempt)
    view = replica_view(ReplicaHistory(stored=StoredReplica(replica=replica, pod_name="x"), ended=()))
    (shown,) = view.attempts
    assert (shown.pod_uid, shown.pod_ip, shown.containers[0].exit_code) == ("p", "10.0.0.1", 3)
