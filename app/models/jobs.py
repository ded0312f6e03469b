"""Jobs and what is recorded of them: conditions, history and requests for another size."""

from typing import Any

from sqlalchemy import BigInteger, Column, Computed, Index, Integer, SmallInteger, Table, Text, desc, text
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB

from app.models.base import (
    EXPIRING_ROWS,
    HOT_ROWS,
    flag_column,
    json_column,
    list_condition,
    metadata,
    number_column,
    optional_json_column,
    text_column,
    time_column,
    trace_columns,
    uid_column,
)

# The phase if it is terminal. In an index, it changes once in the life of a job, and the phase with every transition.
# Spelled as PostgreSQL prints it, so that Alembic can compare the two.
_ENDED = (
    "CASE WHEN phase = ANY (ARRAY['Cancelled'::text, 'Failed'::text, 'Succeeded'::text, 'TimedOut'::text]) THEN phase "
    "ELSE ''::text END"
)

jobs = Table(
    "jobs",
    metadata,
    uid_column("uid", primary_key=True),
    text_column("namespace"),
    text_column("name"),
    text_column("kind"),
    text_column("api_version"),
    json_column("labels", "{}"),
    # JSON, not JSONB, which would reorder the keys, rewrite numbers and refuse an escaped NUL.
    Column("manifest", JSON, nullable=False),
    Column("posted_manifest", JSON),
    Column("posted", JSON),
    Column("claim_names", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
    number_column("generation", default=1),
    number_column("version", default=1),
    number_column("intent_version", default=1),
    time_column("intent_at", nullable=True),
    number_column("status_version", default=0),
    number_column("observed_generation", default=0),
    number_column("history_count", default=0),
    number_column("scale_count", default=0),
    number_column("planned_pods", default=0),
    time_column("created_at"),
    text_column("created_by"),
    text_column("created_by_id", nullable=True),
    uid_column("retry_of", nullable=True),
    *trace_columns(),
    time_column("cancel_requested_at", nullable=True),
    text_column("cancel_requested_by", nullable=True),
    text_column("cancel_requested_by_id", nullable=True),
    text_column("cancel_reason", nullable=True),
    time_column("remove_requested_at", nullable=True),
    time_column("deleted_at", nullable=True),
    text_column("phase"),
    text_column("reason"),
    text_column("message"),
    json_column("status", "{}"),
    Column("reported", JSONB),
    optional_json_column("first_failure"),
    time_column("started_at", nullable=True),
    time_column("finished_at", nullable=True),
    time_column("gone_at", nullable=True),
    time_column("imported_at", nullable=True),
    time_column("redacted_at", nullable=True),
    flag_column("quiet"),
    flag_column("pinned"),
    time_column("wake_at", nullable=True),
    Column("ended", Text, Computed(_ENDED, persisted=True), nullable=False),
    postgresql_with=HOT_ROWS,
)
"""Jobs: the manifest, the intent of clients, and the status that the controller computed.

`version` increases with every change and makes the ETag, `generation` with changes of the spec as in Kubernetes,
`intent_version` with every request of a client, and `status_version` with writes of the controller. `intent_at` is the
time of the last request, or null once a decision has observed it. Columns that end with `by_id` or `actor_id` have the
id of the actor whose name is in the column beside them; it is null where only the name is known. `posted_manifest` is
the manifest as it was posted, or null if that is not known. `posted` is null: processes of the version before name it.
`claim_names` are the PersistentVolumeClaims that the manifest mounts; a trigger derives them, for programs of earlier
versions too. Another trigger derives `pinned`: an annotation
keeps the record for ever, and a setting of the session limits how many a namespace has. `status` has the fields of the
status without a column that differ from their defaults. `reported` is the last report of the job's own pods. A job
with `imported_at` comes from an export: it is for reading, and the controller never loads it. `redacted_at` is the time
of the last step of a redaction, by the clock of PostgreSQL, so two steps have different times.
Indexed columns, except `wake_at`, change only a few times in the life of a job, so that most status updates do not
touch the indexes.
"""

_NEWEST_FIRST = (desc(jobs.c.created_at), desc(jobs.c.uid))

JOB_LISTS: dict[str, tuple[tuple[str, ...], bool]] = {
    "jobs_listed": ((), True),
    "jobs_listed_by_creator": (("created_by_id",), True),
    "jobs_listed_by_namespace": (("namespace",), True),
    "jobs_listed_by_kind": (("kind", "ended"), True),
    "jobs_listed_by_namespace_and_kind": (("namespace", "kind", "ended"), True),
    "jobs_newest": ((), False),
    "jobs_newest_in_namespace": (("namespace",), False),
}
"""The indexes in the order of lists, by name: the columns before that order, and whether deleted jobs are left out."""


def job_list_condition(index: str, *, at: str = "") -> str:
    """Return the predicate of an index of JOB_LISTS. `at` is the alias of the table, with its period."""
    _, only_present = JOB_LISTS[index]
    return (f"{at}deleted_at IS NULL AND " if only_present else "") + list_condition(index, at=at)


for _name, (_columns, _) in JOB_LISTS.items():
    Index(
        _name,
        *(jobs.c[column] for column in _columns),
        *_NEWEST_FIRST,
        postgresql_where=text(job_list_condition(_name)),
    )

HAS_LABELS = "{at}labels <> '{{}}'::jsonb"
"""The template of the predicate of the indexes on labels. `at` is the alias of the table, with its period."""
LABEL_KEYS = """jsonb_path_query_array({at}labels, '$.keyvalue()."key"'::jsonpath, '{{}}'::jsonb, true)"""
"""The template of the expression for the keys of a job's labels, spelled as PostgreSQL prints it.

It raises no error, whatever the labels are, so that the index on it refuses no job.
"""

# For filters that few jobs match. One index has an entry for each label, the other one for each key. The default
# operator class has both in one index, and looks up each label by its key, too, which many jobs have. Without the list
# of `fastupdate`, no query reads new entries that are not in order yet.
_LABELS_INDEX: dict[str, Any] = {
    "postgresql_using": "gin",
    "postgresql_with": {"fastupdate": "off"},
    "postgresql_where": text(HAS_LABELS.format(at="")),
}
Index("jobs_by_label", jobs.c.labels, postgresql_ops={"labels": "jsonb_path_ops"}, **_LABELS_INDEX)
jobs.append_constraint(Index("jobs_by_label_key", text(LABEL_KEYS.format(at="")), **_LABELS_INDEX))
Index("jobs_finished", jobs.c.finished_at, postgresql_where=text("finished_at IS NOT NULL"))
Index("jobs_by_name", jobs.c.namespace, jobs.c.name, *_NEWEST_FIRST)
# For the filters `name` and `prefix` over all namespaces. Without the operator class, an index on a column in the
# database's collation serves no prefix.
Index(
    "jobs_by_name_anywhere",
    jobs.c.name,
    *_NEWEST_FIRST,
    postgresql_ops={"name": "text_pattern_ops"},
)
# What a new controller loads: ended jobs without remaining work are not in it.
Index("jobs_live", jobs.c.namespace, jobs.c.uid, postgresql_where=text("NOT quiet"))
JOBS_STILL_RUNNING = "NOT {at}quiet AND {at}ended <> ''::text"
"""The template of the predicate of the index that finds the ended jobs of which replicas still run, and few others.
`at` is the alias of the table, with its period.

A predicate on `status` would make each update of a status update the indexes.
"""
Index("jobs_with_leftovers", jobs.c.uid, postgresql_where=text(JOBS_STILL_RUNNING.format(at="")))
JOBS_WITH_CLAIMS = "NOT quiet AND claim_names <> '{}'::text[]"
"""The predicate of the index that finds the jobs that mount a claim. Most jobs mount none."""
Index("jobs_with_claims", jobs.c.namespace, postgresql_where=text(JOBS_WITH_CLAIMS))
JOBS_WITH_KEPT_OBJECTS = "quiet AND gone_at IS NULL AND wake_at IS NULL"
"""The predicate of the index that finds the ended jobs whose objects stay until the time of the installation."""
Index("jobs_with_kept_objects", jobs.c.finished_at, postgresql_where=text(JOBS_WITH_KEPT_OBJECTS))
JOBS_PURGEABLE = "gone_at IS NOT NULL AND NOT pinned AND imported_at IS NULL"
"""The predicate of the index that finds the jobs whose records expire. Imported ones ended long ago, and are kept."""
Index(
    "jobs_purgeable",
    jobs.c.namespace,
    jobs.c.finished_at,
    postgresql_where=text(JOBS_PURGEABLE),
)
IMPORTED_JOBS_PURGEABLE = "imported_at IS NOT NULL AND NOT pinned"
"""The predicate of the index that finds the imported jobs whose records expire. Most databases have none."""
Index("jobs_imported", jobs.c.namespace, jobs.c.imported_at, postgresql_where=text(IMPORTED_JOBS_PURGEABLE))
# A namespace has few pinned jobs: a setting limits them.
Index("jobs_pinned", jobs.c.namespace, postgresql_where=text("pinned"))
# The backlog of the controller: empty when every intent has been observed.
Index("jobs_pending_intent", jobs.c.intent_at, postgresql_where=text("intent_at IS NOT NULL"))
Index("jobs_wake", jobs.c.wake_at, postgresql_where=text("wake_at IS NOT NULL"))

conditions = Table(
    "conditions",
    metadata,
    uid_column("job_uid", primary_key=True),
    text_column("type", primary_key=True),
    Column("position", SmallInteger, nullable=False),
    text_column("status"),
    text_column("reason"),
    text_column("message"),
    time_column("last_transition_at"),
    number_column("observed_generation"),
    postgresql_with=HOT_ROWS,
)
"""The conditions of jobs. `position` is their order in the status."""

status_history = Table(
    "status_history",
    metadata,
    uid_column("job_uid", primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    time_column("at"),
    text_column("phase"),
    text_column("reason"),
    text_column("message"),
    text_column("actor"),
    text_column("actor_id", nullable=True),
    text_column("task", nullable=True),
    Column("rank", Integer, nullable=True),
    Column("attempt", Integer, nullable=True),
    postgresql_with=EXPIRING_ROWS,
)
"""The history of jobs: a row for each change of phase or intent, numbered from 1 without gaps for each job."""

scale_records = Table(
    "scale_records",
    metadata,
    uid_column("job_uid", primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    text_column("task"),
    Column("from_replicas", Integer, nullable=False),
    Column("to_replicas", Integer, nullable=False),
    text_column("actor"),
    text_column("actor_id", nullable=True),
    text_column("reason"),
    time_column("requested_at"),
    time_column("settled_at", nullable=True),
    text_column("outcome", nullable=True),
    Column("message", Text, nullable=False, server_default=text("''")),
    postgresql_with=EXPIRING_ROWS,
)
"""Requests for another size of a task, with actor, reason, time and outcome. An open request has the outcome null."""

# Few records are open, however many a job has.
Index("scale_records_open", scale_records.c.job_uid, scale_records.c.seq, postgresql_where=text("outcome IS NULL"))
