"""Metrics of the controller.

Gauges of the installation, such as the number of jobs, come only from the process whose controller is active.
"""

from typing import Final

from prometheus_client import Counter, Histogram

from app.base.bounded_names import OTHERS, BoundedNames
from app.base.instruments import LONG_SECONDS, SHORT_SECONDS, ComputedMetric
from app.domain.status.milestones import Stage

NAMESPACES: Final = BoundedNames(200)
"""The namespaces that are labels. With more of them, each metric of jobs would have thousands of series."""
_QUEUES: Final = BoundedNames(100)  # of Kueue, which are labels; each has a histogram
EVICTION_REASONS: Final = BoundedNames(30)
"""The reasons of evictions that are labels. Kueue has about fifteen; a client with rights on Workloads writes any."""


def queue_labels(namespace: str, name: str) -> tuple[str, str]:
    """Return the labels of a queue of Kueue."""
    return (OTHERS, OTHERS) if _QUEUES.label(f"{namespace}/{name}") == OTHERS else (namespace, name)


# The names and meanings of the metrics of work queues are those of client-go.
QUEUE_DEPTH: Final = ComputedMetric(
    "gauge", "jobgate_workqueue_depth", "Objects that wait to be reconciled, by queue.", ("name",)
)
QUEUE_UNFINISHED: Final = ComputedMetric(
    "gauge",
    "jobgate_workqueue_unfinished_work_seconds",
    "Sum of the times for which objects have been with a worker. A value that grows means that workers hang.",
    ("name",),
)
QUEUE_LONGEST: Final = ComputedMetric(
    "gauge",
    "jobgate_workqueue_longest_running_processor_seconds",
    "Longest time for which an object has been with its worker.",
    ("name",),
)
QUEUE_ADDS: Final = Counter("jobgate_workqueue_adds_total", "Objects that were added to the queue.", ("name",))
QUEUE_RETRIES: Final = Counter(
    "jobgate_workqueue_retries_total", "Objects that were added again with a back-off after a failure.", ("name",)
)
QUEUE_WAIT: Final = Histogram(
    "jobgate_workqueue_queue_duration_seconds",
    "Time from the addition of an object to the beginning of the work on it.",
    ("name",),
    buckets=SHORT_SECONDS,
)
QUEUE_WORK: Final = Histogram(
    "jobgate_workqueue_work_duration_seconds",
    "Time of the work on an object: reconcile and actions.",
    ("name",),
    buckets=SHORT_SECONDS,
)

RECONCILES: Final = Counter(
    "jobgate_reconciles_total",
    "Reconciles by queue and result: done, outdated because the object had changed meanwhile, or failed.",
    ("name", "result"),
)
RECONCILE_ERRORS: Final = Counter(
    "jobgate_reconcile_errors_total",
    "Reconciles and actions that failed, by queue and cause: unexpected error, not_storable, unavailable.",
    ("name", "cause"),
)
RECONCILE_DURATION: Final = Histogram(
    "jobgate_reconcile_duration_seconds",
    "Time from the load of an object to its stored decision, without actions. Jobs of a batch share their time.",
    ("name",),
    buckets=SHORT_SECONDS,
)


class ReconcileMetrics:
    """The series of the reconciles of one queue. prometheus_client looks series up under a lock, here only once."""

    def __init__(self, name: str) -> None:
        self.done = RECONCILES.labels(name, "done")
        self.outdated = RECONCILES.labels(name, "outdated")
        self.failed = RECONCILES.labels(name, "failed")
        self.unexpected = RECONCILE_ERRORS.labels(name, "unexpected")
        self.not_storable = RECONCILE_ERRORS.labels(name, "not_storable")
        self.unavailable = RECONCILE_ERRORS.labels(name, "unavailable")
        self.duration = RECONCILE_DURATION.labels(name)


ACTIONS: Final = Counter(
    "jobgate_cluster_actions_total", "Actions on the cluster by kind and outcome.", ("action", "outcome")
)
ACTION_DURATION: Final = Histogram(
    "jobgate_cluster_action_duration_seconds",
    "Duration of actions on the cluster, each with all its requests.",
    ("action",),
    buckets=SHORT_SECONDS,
)
REFUSED: Final = Counter(
    "jobgate_cluster_refusals_total", "Creates and returns of quota that the cluster refused, by code.", ("code",)
)
EVIDENCE_FAILURES: Final = Counter(
    "jobgate_evidence_failures_total",
    "Failed tries to read evidence of an ended attempt: `what` is log or events, the reason the class of the error.",
    ("what", "reason"),
)

UNKEPT_LOGS: Final = Counter(
    "jobgate_unkept_logs_total",
    "Pods that were released before their logs were kept whole, because of the deadline or because the store fails.",
    ("reason",),
)

MILESTONES: Final = {
    Stage.CREATION: Histogram(
        "jobgate_job_creation_duration_seconds",
        "Time from the submission of a job until each of its replicas has a pod.",
        ("kind",),
        buckets=LONG_SECONDS,
    ),
    Stage.START: Histogram(
        "jobgate_job_start_duration_seconds",
        "Time from the creation of the pods of a job until it runs.",
        ("kind",),
        buckets=LONG_SECONDS,
    ),
    Stage.RUN: Histogram(
        "jobgate_job_run_duration_seconds",
        "Time from the moment that a job first runs to its end.",
        ("kind",),
        buckets=LONG_SECONDS,
    ),
}
ENDED: Final = Counter(
    "jobgate_jobs_ended_total", "Jobs that have ended, by namespace, kind and phase.", ("namespace", "kind", "phase")
)
JOBS: Final = ComputedMetric(
    "gauge", "jobgate_jobs", "Jobs that have not ended, by namespace, kind and phase.", ("namespace", "kind", "phase")
)
USAGE_HELD: Final = ComputedMetric(
    "gauge",
    "jobgate_usage_held",
    "What jobs hold or wait for now, by namespace, resource and use: cores, bytes, devices, pods, and queued jobs.",
    ("namespace", "resource", "use"),
)
RESOURCES: Final = BoundedNames(50)
"""The resources that are labels. Clients request others, but only those of nodes are ever held."""
JOBS_WITHOUT_ROOM: Final = ComputedMetric(
    "gauge",
    "jobgate_jobs_without_room",
    "Jobs that wait for room within the limit of live pods of their namespace.",
    ("namespace",),
)

QUEUE_JOBS: Final = ComputedMetric(
    "gauge",
    "jobgate_queue_jobs",
    "Jobs in a queue of Kueue by state: pending or admitted.",
    ("namespace", "queue", "state"),
)
QUEUE_DURATION: Final = Histogram(
    "jobgate_queue_duration_seconds",
    "Time from the moment that a job queues, for the first time or after an eviction, to its admission by Kueue.",
    ("namespace", "queue"),
    buckets=LONG_SECONDS,
)
EVICTIONS: Final = Counter(
    "jobgate_evictions_total",
    "Evictions of admitted jobs and of their scale-ups by Kueue, such as preemptions, by reason.",
    ("reason",),
)

MIRROR_PODS: Final = ComputedMetric("gauge", "jobgate_mirror_pods", "Pods of this installation in the mirror.")
MIRROR_LISTS: Final = ComputedMetric(
    "counter", "jobgate_mirror_lists_total", "Lists of pods since the term began, the first one included."
)
MIRROR_LIST_AGE: Final = ComputedMetric(
    "gauge", "jobgate_mirror_list_age_seconds", "Time since the pods were last listed. Watches follow each list."
)
MIRROR_LAG: Final = Histogram(
    "jobgate_mirror_lag_seconds",
    "Time from a change of a pod to the stored decision that observes it; for several changes, from the first one.",
    buckets=SHORT_SECONDS,
)
CONTACT_AGE: Final = ComputedMetric(
    "gauge", "jobgate_cluster_contact_age_seconds", "Time since the last contact with the cluster."
)

STATE: Final = ComputedMetric(
    "gauge", "jobgate_controller_state", "1 for the state of the controller of this process, as in /readyz.", ("state",)
)
EPOCH: Final = ComputedMetric("gauge", "jobgate_lease_epoch", "Epoch of the lease that this process holds, or 0.")
LEASE_REMAINING: Final = ComputedMetric(
    "gauge",
    "jobgate_lease_remaining_seconds",
    "Time until the lease of this process expires, negative after that, or 0 without a lease.",
)
LOOP_RESTARTS: Final = Counter("jobgate_loop_restarts_total", "Loops that failed and were started again.", ("loop",))

FEED_POSITION: Final = ComputedMetric("gauge", "jobgate_feed_position", "Number of the last entry of the feed.")
FEED_UNNUMBERED: Final = ComputedMetric(
    "gauge", "jobgate_feed_unnumbered_entries", "Committed entries that the publisher has not numbered, at most 10 000."
)
DATABASE_SIZE: Final = ComputedMetric("gauge", "jobgate_database_size_bytes", "Size of the database.")
OLDEST_ROW: Final = ComputedMetric(
    "gauge", "jobgate_table_oldest_row_age_seconds", "Age of the oldest row of a table that grows.", ("table",)
)
SWEPT_ROWS: Final = Counter(
    "jobgate_swept_rows_total", "Rows that were deleted when their time was over, by table.", ("table",)
)
EXPORT_FAILING: Final = ComputedMetric(
    "gauge",
    "jobgate_export_failing",
    "Whether ended jobs cannot be exported before their records are deleted, so that all are kept: 1 or 0.",
)
SWEEP_LAG: Final = ComputedMetric(
    "gauge", "jobgate_sweep_lag_seconds", "Time since all rows whose time was over had been deleted."
)

AUTOSCALER_RUNS: Final = Counter("jobgate_autoscaler_runs_total", "Runs of the autoscaler by outcome.", ("outcome",))
AUTOSCALER_CHANGES: Final = Counter(
    "jobgate_autoscaler_changes_total",
    "Resizes by the autoscaler: grows, shrinks, or refused because the job was edited or a name is in use.",
    ("change",),
)


def count_evidence_failure(what: str, error: Exception) -> None:
    # The classes of errors are the reasons: a small, fixed number, unlike their messages.
    EVIDENCE_FAILURES.labels(what, type(error).__name__.removeprefix("Kube")).inc()
