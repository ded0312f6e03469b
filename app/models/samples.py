"""SampleSets and SampleJobs with their history and events."""

from sqlalchemy import BigInteger, Column, Index, Table, desc, text
from sqlalchemy.dialects.postgresql import JSON

from app.models.base import (
    EXPIRING_ROWS,
    HOT_ROWS,
    json_column,
    metadata,
    number_column,
    text_column,
    time_column,
    trace_columns,
    uid_column,
    word_column,
)

samples = Table(
    "samples",
    metadata,
    uid_column("uid", primary_key=True),
    word_column("kind"),
    word_column("namespace"),
    word_column("name"),
    text_column("api_version"),
    json_column("labels", "{}"),
    # JSON, for the same reasons as in `jobs`.
    Column("manifest", JSON, nullable=False),
    Column("posted_manifest", JSON),
    Column("posted", JSON),
    word_column("set_name"),
    number_column("generation", default=1),
    number_column("version", default=1),
    number_column("intent_version", default=1),
    time_column("intent_at", nullable=True),
    number_column("observed_generation", default=0),
    number_column("history_count", default=0),
    number_column("event_count", default=0),
    time_column("created_at"),
    text_column("created_by"),
    text_column("created_by_id", nullable=True),
    *trace_columns(),
    time_column("delete_requested_at", nullable=True),
    text_column("delete_requested_by", nullable=True),
    text_column("delete_requested_by_id", nullable=True),
    time_column("gone_at", nullable=True),
    text_column("phase"),
    text_column("reason"),
    text_column("message"),
    json_column("record", "{}"),
    json_column("conditions", "[]"),
    time_column("started_at", nullable=True),
    time_column("finished_at", nullable=True),
    time_column("observed_at", nullable=True),
    time_column("cache_observed_at", nullable=True),
    time_column("wake_at", nullable=True),
    postgresql_with=HOT_ROWS,
)
"""SampleSets and SampleJobs: the manifest, the intent of clients, and the record of the controller.

Columns have the same meaning as in `jobs`. `set_name` is the sample set of a SampleJob, or the own name of a SampleSet.
The name is free again when no object of the sample is left (`gone_at`). `delete_requested_at` is `deletedAt` in the
API. `started_at` and `finished_at` belong to the current try. `observed_at` is the time of the last reconcile that
could read the cluster, `cache_observed_at` that of the last figures from the runtime servers.
"""

_columns = samples.c

# Decides between concurrent submissions of one name.
Index(
    "samples_name",
    _columns.kind,
    _columns.namespace,
    _columns.name,
    unique=True,
    postgresql_where=text("gone_at IS NULL"),
)
Index(
    "samples_by_name",
    _columns.kind,
    _columns.namespace,
    _columns.name,
    desc(_columns.created_at),
    desc(_columns.uid),
)
Index("samples_by_name_anywhere", _columns.kind, _columns.name, desc(_columns.created_at), desc(_columns.uid))
Index("samples_finished", _columns.kind, _columns.finished_at, postgresql_where=text("finished_at IS NOT NULL"))
Index("samples_newest", _columns.kind, desc(_columns.created_at), desc(_columns.uid))
Index(
    "samples_newest_in_namespace",
    _columns.kind,
    _columns.namespace,
    desc(_columns.created_at),
    desc(_columns.uid),
)
Index(
    "samples_by_set",
    _columns.kind,
    _columns.set_name,
    _columns.namespace,
    desc(_columns.created_at),
    desc(_columns.uid),
)
Index("samples_of_set", _columns.namespace, _columns.set_name, postgresql_where=text("gone_at IS NULL"))
Index("samples_pending_intent", _columns.intent_at, postgresql_where=text("intent_at IS NOT NULL"))
Index("samples_wake", _columns.wake_at, postgresql_where=text("wake_at IS NOT NULL"))

SAMPLES_PURGEABLE = (
    "(gone_at IS NOT NULL OR (kind = 'SampleJob'::text AND finished_at IS NOT NULL AND wake_at IS NULL))"
)
"""The predicate of the index that finds the samples whose records expire: those that are gone, and SampleJobs that have
ended, which have no objects.
"""
SAMPLE_END = "COALESCE(gone_at, finished_at)"
"""The expression for the time from which the record of such a sample is kept."""
samples.append_constraint(
    Index(
        "samples_purgeable",
        _columns.namespace,
        text(SAMPLE_END),
        postgresql_where=text(SAMPLES_PURGEABLE),
    )
)

sample_history = Table(
    "sample_history",
    metadata,
    uid_column("uid", primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    time_column("at"),
    text_column("phase"),
    text_column("reason"),
    text_column("message"),
    text_column("actor"),
    text_column("actor_id", nullable=True),
    postgresql_with=EXPIRING_ROWS,
)
"""The history of samples, numbered from 1 without gaps for each sample."""

sample_events = Table(
    "sample_events",
    metadata,
    uid_column("uid", primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    time_column("at"),
    text_column("type"),
    text_column("reason"),
    text_column("message"),
    postgresql_with=EXPIRING_ROWS,
)
"""Events of the controller about a sample, under upstream's names, numbered from 1 without gaps."""
