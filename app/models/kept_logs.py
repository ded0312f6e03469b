"""The index of whole logs, whose text is in the object store, and the processes that keep them."""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Table, text

from app.models.base import (
    EXPIRING_ROWS,
    HOT_ROWS,
    attempt_key,
    flag_column,
    metadata,
    number_column,
    text_column,
    time_column,
    uid_column,
    word_column,
)


def _log_key() -> tuple[Column[object], ...]:
    return (
        *attempt_key(),
        text_column("container", primary_key=True),
        Column("run", Integer, primary_key=True, autoincrement=False),
    )


kept_logs = Table(
    "kept_logs",
    metadata,
    *_log_key(),
    text_column("namespace"),
    text_column("state"),
    number_column("text_bytes", default=0),
    number_column("lines", default=0),
    number_column("stored_bytes", default=0),
    time_column("first_at", nullable=True),
    time_column("last_at", nullable=True),
    Column("position", LargeBinary),
    flag_column("passes_over"),
    number_column("version", default=0),
    text_column("note", nullable=True),
    time_column("updated_at"),
    time_column("finished_at", nullable=True),
    # For retention. Writes to a log that is followed change no index.
    Index("kept_logs_by_age", "namespace", "finished_at", postgresql_where=text("finished_at IS NOT NULL")),
    Index("kept_logs_following", "job_uid", postgresql_where=text("finished_at IS NULL")),
    postgresql_with=HOT_ROWS,
)
"""Whole logs, one row for each run of a container. `passes_over` is set by a redaction: see `KeptLog`."""

log_chunks = Table(
    "log_chunks",
    metadata,
    *_log_key(),
    Column("start", BigInteger, primary_key=True, autoincrement=False),
    # A gap has the length 0 and the place of the chunk after it.
    Column("length", Integer, primary_key=True, autoincrement=False),
    number_column("first_line"),
    Column("lines", Integer, nullable=False),
    time_column("first_at", nullable=True),
    time_column("last_at", nullable=True),
    Column("stored_bytes", Integer, nullable=False),
    text_column("object_name", nullable=True),
    text_column("gap", nullable=True),
    postgresql_with=EXPIRING_ROWS,
)
"""The parts of whole logs: objects in the store, and gaps."""

kept_log_totals = Table(
    "kept_log_totals",
    metadata,
    text_column("namespace", primary_key=True),
    # The nil uid stands for all jobs of the namespace.
    uid_column("job_uid", primary_key=True),
    number_column("text_bytes"),
    number_column("stored_bytes"),
    postgresql_with=HOT_ROWS,
)
"""How much text is kept of each job and namespace, for their limits, and how large its objects are."""

log_deletions = Table(
    "log_deletions",
    metadata,
    word_column("object_name", primary_key=True),
    time_column("requested_at"),
)
"""Objects of the store that no chunk has any more, until they are deleted."""

log_keepers = Table(
    "log_keepers",
    metadata,
    word_column("id", primary_key=True),
    time_column("expires_at"),
    text_column("store_error", nullable=True),
    postgresql_with={"fillfactor": "50"},
)
"""The processes that keep logs now. `store_error` says why one cannot write to the store."""
