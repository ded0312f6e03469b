"""Metrics of the loops, in the process-wide Prometheus registry that /metrics serves."""

from prometheus_client import Counter, Gauge

PASSES = Counter("jobgate_reconcile_passes_total", "Passes over jobs: decisions made, whether or not anything changed.")
REJECTED = Counter("jobgate_reconcile_rejected_total", "Decisions that were made again because the job had moved.")
UNWRITABLE = Counter("jobgate_reconcile_unwritable_total", "Decisions that Postgres could not store.")
ACTIONS = Counter("jobgate_cluster_actions_total", "Actions on the cluster by kind and outcome.", ("action", "outcome"))
REFUSED = Counter("jobgate_cluster_refusals_total", "Creates that the cluster refused, by code.", ("code",))
QUEUED = Gauge("jobgate_reconcile_queue_length", "Jobs that wait for a pass.")
SAMPLE_PASSES = Counter(
    "jobgate_sample_passes_total",
    "Passes over SampleSets and SampleJobs by outcome: done, again or failed.",
    ("outcome",),
)
EPOCH = Gauge("jobgate_lease_epoch", "Epoch of the lease this process holds; 0 when it holds none.")
LEASE_REMAINING = Gauge(
    "jobgate_lease_remaining_seconds",
    "Time until the lease that this process holds runs out; negative once it has; 0 when it holds none.",
)
CONTACT_AGE = Gauge("jobgate_cluster_contact_age_seconds", "Time since the cluster last said anything about our pods.")
RELISTS = Gauge("jobgate_reflector_relists", "Lists since the term began; the first is one of them.")
LOOP_RESTARTS = Counter("jobgate_loop_restarts_total", "Loops that failed and were started again.", ("loop",))
AUTOSCALER_RUNS = Counter("jobgate_autoscaler_runs_total", "Looks of the autoscaler by outcome.", ("outcome",))
AUTOSCALER_CHANGES = Counter(
    "jobgate_autoscaler_changes_total",
    "Changes of size by the autoscaler: grows, shrinks, or refused since the job had been edited or a name is in use.",
    ("change",),
)
