"""What Postgres keeps, one table a file, described for migrations and for nobody else's logic.

No table refers to another by a foreign key: every row of a job is written beside its job row and purged with it, and a
key share lock on the job for each of ten thousand replica rows would be the price of saying so.
Words of `app.domain.vocabulary` are stored as text: a new phase needs no migration.
"""

from app.models.api_token import api_tokens
from app.models.attempt import attempts
from app.models.attempt_event import attempt_events
from app.models.attempt_log import attempt_logs
from app.models.autoscaler_run import autoscaler_runs
from app.models.base import metadata
from app.models.condition import conditions
from app.models.feed import feed
from app.models.heartbeat import heartbeats
from app.models.idempotency_key import idempotency_keys
from app.models.installation import installation
from app.models.job import jobs
from app.models.job_event import job_events
from app.models.lease import leases
from app.models.name import names
from app.models.planned_pods import planned_pods
from app.models.replica import replicas
from app.models.sample import samples
from app.models.sample_event import sample_events
from app.models.sample_history import sample_history
from app.models.scale_record import scale_records
from app.models.status_history import status_history

__all__ = [
    "api_tokens",
    "attempt_events",
    "attempt_logs",
    "attempts",
    "autoscaler_runs",
    "conditions",
    "feed",
    "heartbeats",
    "idempotency_keys",
    "installation",
    "job_events",
    "jobs",
    "leases",
    "metadata",
    "names",
    "planned_pods",
    "replicas",
    "sample_events",
    "sample_history",
    "samples",
    "scale_records",
    "status_history",
]
