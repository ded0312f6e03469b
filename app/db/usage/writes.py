"""Adds to the sums of usage what a decision has ended, and replaces the rates of its job.

The caller's transaction stores the holds and waits from which both follow, so they are counted once. Only the holder of
the lease writes these tables.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any, Final
from uuid import UUID

from app.db.postgres.columns import Columns, columns
from app.db.postgres.engine import Connection, Database
from app.domain.usage.groups import UsageGroup
from app.domain.usage.sums import UsageChange
from app.domain.vocabulary import Use
from app.models.usage import LABELS_HASH, usage_days, usage_groups, usage_rates

MOST_GROUPS: Final = 5_000
"""The groups of one namespace. Clients choose queues and labels, and a group has rows for each day of its jobs.

Further queues and labels are `OTHER`.
"""

_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY: Final = columns(usage_days, "group_id", "day", "resource", *Use)
_ADDED: Final = ", ".join(f"{use} = d.{use} + excluded.{use}" for use in Use)
_ADD: Final = f"""
INSERT INTO usage_days AS d ({_DAY}) SELECT {_DAY} FROM {_DAY.rows("w")}
ON CONFLICT (group_id, day, resource) DO UPDATE SET {_ADDED}
"""  # noqa: S608  constants
_RATE: Final = columns(usage_rates, "job_uid", "day", "resource", "use", "group_id", "amount", "behind")
_FORGET_RATES: Final = "DELETE FROM usage_rates WHERE job_uid = ANY($1::uuid[])"
_SET_RATES: Final = f"INSERT INTO usage_rates ({_RATE}) SELECT {_RATE} FROM {_RATE.rows('w')}"  # noqa: S608  constants
_GROUP: Final = columns(usage_groups, "namespace", "user_id", "user_name", "queue", "kind", "labels")
_SAME: Final = " AND ".join(f"{name} = ${index}" for index, name in enumerate(_GROUP.names, 1))
# The index has the hash of the labels.
_HASHED: Final = f"{LABELS_HASH} = {LABELS_HASH.replace('labels', '$6')}"
_FIND: Final = f"SELECT min(id) FROM usage_groups WHERE {_SAME} AND {_HASHED}"  # noqa: S608  constants
_COUNT: Final = "SELECT count(*) FROM (SELECT FROM usage_groups WHERE namespace = $1 AND kind <> '' LIMIT $2) AS known"
_MAKE: Final = f"INSERT INTO usage_groups ({_GROUP}) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id"  # noqa: S608
# By the index of live jobs, which are few.
_FORGET_ENDED: Final = (
    "DELETE FROM usage_rates AS r WHERE NOT EXISTS (SELECT FROM jobs AS j WHERE j.uid = r.job_uid AND NOT j.quiet)"
)
_MOVE: Final = "UPDATE usage_groups SET namespace = $2 WHERE namespace = $1"


async def store(connection: Connection, changes: Sequence[tuple[UUID, UsageGroup, UsageChange]]) -> None:
    """Store the changes of the usage of jobs."""
    # In one order, whatever the order of the jobs.
    groups = {part for _, group, _ in changes for part in (group, group.whole)}
    ids = {group: await _id_of(connection, group) for group in sorted(groups, key=str)}
    sums: dict[tuple[int, str, int], dict[Use, int]] = {}
    for _, group, change in changes:
        for (day, resource, use), total in change.ended.items():
            for part in (group, group.whole):
                row = sums.setdefault((ids[part], resource, day), dict.fromkeys(Use, 0))
                row[use] += total
    if sums:
        # Days of one resource follow each other, so that the rows of their months are also locked in one order.
        rows = [(group, _date(day), resource, *row.values()) for (group, resource, day), row in sorted(sums.items())]
        await connection.execute(_ADD, *Columns.arguments(rows))
    await _replace_rates(connection, [(uid, ids[group], change) for uid, group, change in changes])


async def _replace_rates(connection: Connection, changes: Sequence[tuple[UUID, int, UsageChange]]) -> None:
    replaced = [(uid, group, change.rates) for uid, group, change in changes if change.rates is not None]
    if not replaced:
        return
    await connection.execute(_FORGET_RATES, [uid for uid, _, _ in replaced])
    rows: list[tuple[Any, ...]] = [
        (uid, _date(day), resource, use, group, *rate)
        for uid, group, rates in replaced
        for (day, resource, use), rate in rates.items()
    ]
    if rows:
        await connection.execute(_SET_RATES, *Columns.arguments(rows))


async def _id_of(connection: Connection, group: UsageGroup) -> int:
    """Return the id of a group, which is made if there is none yet."""
    known = await connection.fetchval(_FIND, *_row(group))
    if known is None and group != group.coarse:
        count = await connection.fetchval(_COUNT, group.namespace, MOST_GROUPS)
        if count == MOST_GROUPS:
            return await _id_of(connection, group.coarse)
    return int(known if known is not None else await connection.fetchval(_MAKE, *_row(group)))


def _row(group: UsageGroup) -> tuple[Any, ...]:
    return (group.namespace, group.user_id, group.user_name, group.queue, group.kind, dict(group.labels))


def _date(day: int) -> date:
    return date.fromordinal(_EPOCH + day)


async def forget_ended(db: Database) -> None:
    """Delete the rates of jobs that have ended. Only a process of an earlier version leaves some."""
    async with db.begin() as connection:
        await connection.execute(_FORGET_ENDED)


async def move(connection: Connection, namespace: str, former: str) -> None:
    """Move the usage of a namespace to another name."""
    await connection.execute(_MOVE, namespace, former)
