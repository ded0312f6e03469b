"""A column for the manifests of jobs and samples as they were posted, in place of their differences from accepted ones.

A process of the version before keeps the differences in the column `posted`, which a later version drops. Until then
triggers keep it null, and forget the posted manifest of what such a process stores or edits.

Each table is converted in batches under one lock, which stops its reads and writes: about half a minute for 100 000
jobs with a difference. Rows of version 0.1 have none.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
from alembic import op
from sqlalchemy import text

revision: str = "0020"
down_revision: str | None = "0019"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "and reads of jobs: about half a minute for 100 000 jobs of a version since 0.1"
undoing_loses = "the posted manifests"

TABLES = ("jobs", "samples")
BATCH = 50  # rows, each with documents of up to a few megabytes
SELECT = """
SELECT uid, manifest::text, posted::text FROM {table} WHERE posted IS NOT NULL AND uid > :after
ORDER BY uid LIMIT {batch}
"""
UPDATE = "UPDATE {table} SET posted = NULL, posted_manifest = CAST(:document AS json) WHERE uid = :uid"
FUNCTION = """
CREATE FUNCTION forget_posted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.posted := NULL;
    NEW.posted_manifest := NULL;
    RETURN NEW;
END $$
"""
# The conditions limit them to the statements of the version before, which alone name the column.
TRIGGERS = {
    "forget_posted_of_new": "INSERT ON {table} FOR EACH ROW WHEN (NEW.posted IS NOT NULL)",
    "forget_posted": "UPDATE OF posted ON {table} FOR EACH ROW",
}


def upgrade() -> None:
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ADD COLUMN posted_manifest JSON")
        _convert(table)
    op.execute(FUNCTION)
    for table in TABLES:
        for name, event in TRIGGERS.items():
            op.execute(f"CREATE TRIGGER {name} BEFORE {event.format(table=table)} EXECUTE FUNCTION forget_posted()")


def downgrade() -> None:
    for table in TABLES:
        for name in TRIGGERS:
            op.execute(f"DROP TRIGGER {name} ON {table}")
        op.execute(f"ALTER TABLE {table} DROP COLUMN posted_manifest")
    op.execute("DROP FUNCTION forget_posted")


def _convert(table: str) -> None:
    connection, after = op.get_bind(), "00000000-0000-0000-0000-000000000000"
    select, update = text(SELECT.format(table=table, batch=BATCH)), text(UPDATE.format(table=table))
    while rows := connection.execute(select, {"after": after}).all():
        documents = [{"uid": uid, "document": _document(manifest, posted)} for uid, manifest, posted in rows]
        connection.execute(update, documents)
        after = rows[-1].uid


def _document(manifest: str, posted: str) -> str | None:
    """Return the posted manifest, or None if the difference is from another manifest than the stored one."""
    accepted, record = msgspec.json.decode(manifest), msgspec.json.decode(posted)
    if record["of"] != zlib.crc32(msgspec.json.encode(accepted)):
        return None
    return msgspec.json.encode(_applied(accepted, record["difference"])).decode()


def _applied(base: Any, change: dict[str, Any]) -> Any:
    """Return the value of which `change` is the difference from `base`.

    A difference is empty if the two are the same, or has the posted `value`; or the `keys` of a posted object in their
    order, unless they are those of the base, and the differences `within`, by key or by index.
    """
    if not change:
        return base
    if "value" in change:
        return change["value"]
    within = change.get("within", {})
    if isinstance(base, list):
        return [_applied(item, within.get(str(index), {})) for index, item in enumerate(base)]
    return {key: _applied(base.get(key), within.get(key, {})) for key in change.get("keys", base)}
