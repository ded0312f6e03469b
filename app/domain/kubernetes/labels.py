"""Every label, annotation and finalizer key that jobgate writes on objects and reads.

Invariant: no other module spells these keys, so the readers and the writers of a key always agree.
"""

import re
from typing import Final

PREFIX = "jobgate.dev/"

INSTALLATION = PREFIX + "installation"  # id of the database that the object belongs to
JOB_UID = PREFIX + "job-uid"
KIND = PREFIX + "kind"
TASK = PREFIX + "task"
TASK_RANK = PREFIX + "task-rank"
GLOBAL_RANK = PREFIX + "global-rank"
ATTEMPT = PREFIX + "attempt"
SAMPLE_SET_UID = PREFIX + "sample-set-uid"
SAMPLE_SET_NAMESPACE = PREFIX + "sample-set-namespace"  # on a PersistentVolume, which has no namespace

GENERATION = PREFIX + "generation"  # annotation on the anchor
TERMINAL_PHASE = PREFIX + "terminal-phase"  # annotation on the anchor, once the job has ended
QUEUE = PREFIX + "queue"  # annotation on a Workload: the LocalQueue that jobgate chose for it

EVIDENCE_FINALIZER = PREFIX + "evidence"
ADMISSION_FINALIZER = PREFIX + "admission"  # on a Workload, until the last pod of its job is gone

MANAGED_BY = "app.kubernetes.io/managed-by"
PART_OF = "app.kubernetes.io/part-of"
INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"
MANAGER = "jobgate"

# Settings that a client may put on a manifest's metadata.annotations. The main container is also on templates and pods.
TTL_SECONDS_AFTER_FINISHED = PREFIX + "ttl-seconds-after-finished"
ACTIVE_DEADLINE_SECONDS = PREFIX + "active-deadline-seconds"
PENDING_DEADLINE_SECONDS = PREFIX + "pending-deadline-seconds"
START_DEADLINE_SECONDS = PREFIX + "start-deadline-seconds"
AUTOSCALE = PREFIX + "autoscale"
POD_POLICY_ALLOW = PREFIX + "pod-policy-allow"
MAIN_CONTAINER = PREFIX + "main-container"
KEEP = PREFIX + "keep"
CLIENT_DURATIONS = frozenset(
    {TTL_SECONDS_AFTER_FINISHED, ACTIVE_DEADLINE_SECONDS, PENDING_DEADLINE_SECONDS, START_DEADLINE_SECONDS}
)
CLIENT_FLAGS = frozenset({AUTOSCALE, KEEP})
CLIENT_ANNOTATIONS = CLIENT_DURATIONS | CLIENT_FLAGS | {POD_POLICY_ALLOW, MAIN_CONTAINER}


# The same uid in capitals would be a second key in the work queue: two reconciles of one job at a time.
_UID: Final = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_job_uid(text: str) -> bool:
    """Return whether the value of a job label is a uid as jobgate writes it."""
    return _UID.fullmatch(text) is not None


def anchor_name(job_uid: str) -> str:
    """Return the name of the anchor, the ConfigMap that owns every other object of the job."""
    # The uid and not the name: a later job may reuse the name while this anchor still exists.
    return f"jobgate-{job_uid}"
