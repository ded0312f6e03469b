"""Metrics of the loops, in the process-wide Prometheus registry that /metrics serves."""

from prometheus_client import Counter, Gauge

PASSES = Counter("jobgate_reconcile_passes_total", "Reconciles of jobs, whether or not anything changed.")
REJECTED = Counter("jobgate_reconcile_rejected_total", "Decisions that were outdated because the job had changed.")
FAILED = Counter("jobgate_reconcile_failed_total", "Reconciles and actions of jobs that raised an unexpected error.")
UNWRITABLE = Counter("jobgate_reconcile_unwritable_total", "Decisions that Postgres could not store.")
ACTIONS = Counter("jobgate_cluster_actions_total", "Actions on the cluster by kind and outcome.", ("action", "outcome"))
REFUSED = Counter("jobgate_cluster_refusals_total", "Creates that the cluster refused, by code.", ("code",))
QUEUED = Gauge("jobgate_reconcile_queue_length", "Jobs that wait to be reconciled.")
SAMPLE_PASSES = Counter(
    "jobgate_sample_passes_total",
    "Reconciles of SampleSets and SampleJobs by outcome: done, again or failed.",
    ("outcome",),
)
EPOCH = Gauge("jobgate_lease_epoch", "Epoch of the lease that this process holds, or 0.")
LEASE_REMAINING = Gauge(
    "jobgate_lease_remaining_seconds",
    "Time until the lease of this process expires, negative after that, or 0 without a lease.",
)
CONTACT_AGE = Gauge("jobgate_cluster_contact_age_seconds", "Time since the last contact with the cluster.")
RELISTS = Gauge("jobgate_reflector_relists", "Lists of pods since the term began, the first one included.")
LOOP_RESTARTS = Counter("jobgate_loop_restarts_total", "Loops that failed and were started again.", ("loop",))
AUTOSCALER_RUNS = Counter("jobgate_autoscaler_runs_total", "Runs of the autoscaler by outcome.", ("outcome",))
AUTOSCALER_CHANGES = Counter(
    "jobgate_autoscaler_changes_total",
    "Resizes by the autoscaler: grows, shrinks, or refused because the job was edited or a name is in use.",
    ("change",),
)
