"""The evidence of ended attempts: the ends of logs as bytes, the last Events, and whether these were available."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from app.db.feed import changes
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.jobs.attempts import ATTEMPT_KEY
from app.db.objects.events import EventPlace
from app.db.postgres.columns import Columns, columns
from app.db.postgres.engine import Connection, Database
from app.domain.plan import Rank
from app.domain.vocabulary import Evidence
from app.models.replicas import attempt_events, attempt_logs, attempts


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The end of a container's log. `truncated` is True if the log is longer."""

    tail: bytes
    truncated: bool = False


# The new `status_version` rejects a concurrent decision, which would overwrite the state of the evidence.
_LOCK = """
UPDATE jobs SET version = version + 1, status_version = status_version + 1
WHERE uid = $1 RETURNING redacted_at, namespace, uid, version
"""
_LOG: Final = ATTEMPT_KEY + columns(attempt_logs, "container", "tail", "truncated")
_LOGS: Final = f"""
INSERT INTO attempt_logs ({_LOG}) SELECT {_LOG} FROM {_LOG.rows("w")}
ON CONFLICT (job_uid, task, rank, attempt, container) DO UPDATE SET tail = excluded.tail, truncated = excluded.truncated
"""  # noqa: S608  constants
_EVENT: Final = ATTEMPT_KEY + columns(attempt_events, "events")
_EVENTS: Final = f"""
INSERT INTO attempt_events ({_EVENT}) SELECT {_EVENT} FROM {_EVENT.rows("w")}
ON CONFLICT (job_uid, task, rank, attempt) DO UPDATE SET events = excluded.events
"""  # noqa: S608  constants
_STATE: Final = columns(attempts, "evidence", "evidence_reason", "last_lines")
# An attempt that has ended and is not replaced yet has a row in both tables.
_STATES: Final = tuple(
    f"""
UPDATE {table} AS a SET {_STATE.assignments("w")} FROM {(ATTEMPT_KEY + _STATE).rows("w")}
WHERE ({ATTEMPT_KEY.of("a")}) = ({ATTEMPT_KEY.of("w")})
"""  # noqa: S608  constants
    for table in ("attempts", "replicas")
)
_READ_LOG = """
SELECT tail, truncated FROM attempt_logs
WHERE job_uid = $1 AND task = $2 AND rank = $3 AND attempt = $4 AND container = $5
"""
# Only the attempts that can fill the page are expanded: each has at least one event, except the first, all events of
# which may precede the page. The order never changes, so that a page repeats and skips no event if attempts end.
_READ_EVENTS = """
WITH listed AS MATERIALIZED (
    SELECT e.attempt, e.task, e.rank, e.events
    FROM attempt_events AS e JOIN attempts AS a USING (job_uid, task, rank, attempt)
    WHERE e.job_uid = $1 AND lower(a.evidence) <> 'none'
      AND (-e.attempt, e.task, e.rank) >= (-$2::int, $3::text, $4::int)
    ORDER BY -e.attempt, e.task, e.rank LIMIT $6::int + 1
)
SELECT item.event, l.attempt, l.task, l.rank, item.number
FROM listed AS l CROSS JOIN LATERAL jsonb_array_elements(l.events) WITH ORDINALITY AS item(event, number)
WHERE (-l.attempt, l.task, l.rank, item.number) > (-$2::int, $3::text, $4::int, $5::bigint)
ORDER BY -l.attempt, l.task, l.rank, item.number LIMIT $6::int
"""


class StoredEvent(NamedTuple):
    """A stored Event about the pod of an attempt. `event` has type, reason, message, count and lastSeen."""

    place: EventPlace
    event: Mapping[str, Any]


_BEFORE_ALL: Final = EventPlace(attempt=2**31 - 1)  # the newest attempts come first


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """The evidence that was available of one attempt. `reason` explains why some of it was not.

    `last_lines` are those of the log of the container that failed; None if no container failed or it has no log.
    """

    key: Rank
    attempt: int
    state: Evidence
    reason: str | None = None
    logs: Mapping[str, Log]
    events: Sequence[Mapping[str, Any]] = ()
    last_lines: Sequence[str] | None = None


class LaterRedaction(Exception):  # noqa: N818 - what a client has requested
    """The job was redacted at another time than the one that was known when its logs were read."""

    def __init__(self, at: datetime | None) -> None:
        super().__init__(f"the job was redacted at {at}")
        self.at = at


async def store(
    db: Database, lease: Lease, uid: UUID, captures: Sequence[Capture], *, redacted_at: datetime | None = None
) -> bool:
    """Store evidence of attempts of one job, and its state, in one transaction. Return False if the job does not exist.

    The logs have nothing that was printed before the redaction at `redacted_at`.

    Raises:
        LaterRedaction: the job was redacted later; nothing was written.
        LeaseLost: another controller holds the lease; nothing was written.
        NotStorable: a value cannot be stored, and nothing was written.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        changed = await connection.fetchrow(_LOCK, uid)
        if changed is None:
            return False
        redaction, *version = changed
        if redaction != redacted_at:
            raise LaterRedaction(redaction)
        await _write(connection, uid, captures)
        await changes.announce(connection, changes.STATUS, [tuple(version)])
    return True


async def _write(connection: Connection, uid: UUID, captures: Sequence[Capture]) -> None:
    keyed = [((uid, *capture.key, capture.attempt), capture) for capture in captures]
    logs = [
        (*key, container, log.tail, log.truncated) for key, capture in keyed for container, log in capture.logs.items()
    ]
    events = [_EVENT.encode((*key, list(capture.events))) for key, capture in keyed if capture.events]
    states = [(*key, *_state(capture)) for key, capture in keyed]
    if logs:
        await connection.execute(_LOGS, *Columns.arguments(logs))
    if events:
        await connection.execute(_EVENTS, *Columns.arguments(events))
    for statement in _STATES:
        await connection.execute(statement, *Columns.arguments(states))


def _state(capture: Capture) -> tuple[Any, ...]:
    lines = None if capture.last_lines is None else list(capture.last_lines)
    return _STATE.encode((capture.state, capture.reason, lines))


async def log(db: Database, uid: UUID, key: Rank, attempt: int, container: str) -> Log | None:
    """Return the stored end of a container's log, or None if there is none."""
    async with db.read() as connection:
        row = await connection.fetchrow(_READ_LOG, uid, *key, attempt, container)
    return None if row is None else Log(**row)


async def events_page(db: Database, uid: UUID, after: EventPlace | None, limit: int) -> list[StoredEvent]:
    """Return at most `limit` stored Events that follow a place, those of the newest attempts first."""
    async with db.read() as connection:
        rows = await connection.fetch(_READ_EVENTS, uid, *(after or _BEFORE_ALL), limit)
    return [StoredEvent(EventPlace(*place), event) for event, *place in rows]
