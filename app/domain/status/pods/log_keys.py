"""The keys of the logs of a pod, as its labels and the states of its containers name them."""

from uuid import UUID

from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.runs import runs_of
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Pod
from app.domain.status.pods.observation import labelled_attempt


def attempt_key(pod: Pod) -> LogKey | None:
    """Return the key of the attempt that the labels of a pod name, without a container; None if they name none."""
    uid = pod.metadata.labels.get(labels.JOB_UID, "")
    (task, rank), attempt = labelled_attempt(pod.metadata)
    if not labels.is_job_uid(uid) or rank < 0 or attempt < 0:
        return None
    return LogKey(UUID(uid), task, rank, attempt, "")


def log_keys(pod: Pod) -> list[LogKey]:
    """Return the keys of the logs that the cluster has of a pod."""
    attempt = attempt_key(pod)
    return [] if attempt is None else [attempt.of_run(run.container, run.number) for run in runs_of(pod)]
