"""The tables of PostgreSQL, in one module for each subject.

No table refers to another by a foreign key: a transaction writes all rows of a job beside its job row and deletes them
with it, and with foreign keys each of ten thousand replica rows would take a key share lock on the job.
Words of `app.domain.vocabulary` are stored as text, so a new phase needs no migration.
"""

from app.models import (
    autoscaler,
    feed,
    installation,
    jobs,
    kept_logs,
    purged,
    queues,
    replicas,
    requests,
    reservations,
    samples,
    timekeeping,
    usage,
)
from app.models.base import metadata

__all__ = [
    "autoscaler",
    "feed",
    "installation",
    "jobs",
    "kept_logs",
    "metadata",
    "purged",
    "queues",
    "replicas",
    "requests",
    "reservations",
    "samples",
    "timekeeping",
    "usage",
]
