"""Named points at which tests kill the process, to prove that a crash there loses nothing and repeats nothing.

`JOBGATE_FAULT_POINTS=name:3,other:1` kills the process when it reaches `name` for the third time or `other` for the
first time. With `name:3:hang`, it blocks the event loop forever instead. Outside tests, a fault point does nothing.
"""

import os
import signal
import time
from collections.abc import Mapping
from enum import StrEnum


class FaultPoint(StrEnum):
    """The steps between a write to the database and the action or answer that depends on it."""

    SUBMISSION_ARRIVED = "submission-arrived"
    SUBMISSION_STORED = "submission-stored"
    EDIT_STORED = "edit-stored"
    RESIZE_STORED = "resize-stored"  # by the autoscaler, before its run is recorded
    ROOM_GIVEN = "room-given"  # to jobs that waited for it, before they are reconciled
    DECIDED = "decided"
    PERSISTED = "persisted"
    ANCHOR_CREATED = "anchor-created"
    HOSTS_WRITTEN = "hosts-written"
    SERVICE_CREATED = "service-created"
    POD_BEFORE_CREATE = "pod-before-create"
    POD_CREATED = "pod-created"  # after the 201, before the pod is recorded
    EVIDENCE_READ = "evidence-read"
    EVIDENCE_STORED = "evidence-stored"
    LOG_CHUNK_PUT = "log-chunk-put"  # before the row of the chunk
    LOG_CHUNK_INDEXED = "log-chunk-indexed"
    POD_BEFORE_DELETE = "pod-before-delete"
    POD_DELETED = "pod-deleted"
    POD_RELEASED = "pod-released"
    ANCHOR_MARKED = "anchor-marked"
    WORKLOAD_CREATED = "workload-created"
    WORKLOAD_BEFORE_WRITE = "workload-before-write"
    WORKLOAD_WRITTEN = "workload-written"  # its status, its activation, or its removal
    POD_UNGATED = "pod-ungated"
    OBJECTS_REMOVED = "objects-removed"
    SAMPLE_STORED = "sample-stored"
    SAMPLE_DECIDED = "sample-decided"
    SAMPLE_PERSISTED = "sample-persisted"
    SAMPLE_OBJECT_CREATED = "sample-object-created"
    SAMPLE_POSTED = "sample-posted"
    SAMPLE_TERMINATED = "sample-terminated"
    SAMPLE_OBJECT_DELETED = "sample-object-deleted"
    NODE_LABELLED = "node-labelled"
    BATCH_PURGED = "batch-purged"  # records of expired objects; further ones may be left
    SEGMENT_WRITTEN = "segment-written"  # of an export, before it is in its folder
    SEGMENT_STORED = "segment-stored"
    JOB_IMPORTED = "job-imported"  # before the commit
    LEASE_ACQUIRED = "lease-acquired"
    LEASE_RENEWED = "lease-renewed"
    RECOVERY_BEGUN = "recovery-begun"  # the stop is recorded in the cluster
    RECOVERY_STORED = "recovery-stored"  # decisions about jobs
    RECOVERY_RELEASED = "recovery-released"  # an object of a job that the database does not know
    RECOVERY_CONTINUED = "recovery-continued"  # the database may continue, and the cluster still records the stop


HANG = "hang"

_armed: dict[str, int] = {}
_hangs: set[str] = set()


def arm(environment: Mapping[str, str]) -> None:
    """Arm the points that JOBGATE_FAULT_POINTS names."""
    for item in filter(None, environment.get("JOBGATE_FAULT_POINTS", "").split(",")):
        name, count, action, *_ = [*item.split(":"), "", ""]
        _armed[FaultPoint(name)] = int(count or 1)
        if action == HANG:
            _hangs.add(FaultPoint(name))


def reach(point: FaultPoint) -> None:
    """Kill or block the process if the point is armed and its count is used up."""
    if point not in _armed:
        return
    _armed[point] -= 1
    if _armed[point] > 0:
        return
    while point in _hangs:
        time.sleep(60.0)
    os.kill(os.getpid(), signal.SIGKILL)
