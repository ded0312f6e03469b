"""The command `redact`: it removes the values of environment variables from stored jobs."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from app.clock import SystemClock
from app.connections import NotPossible
from app.db.engine import Database
from app.db.jobs import redaction
from app.domain.access.actors import REDACTION
from app.domain.errors import DomainError


async def redact_jobs(db: Database, jobs: Sequence[str]) -> AsyncIterator[str]:
    """Redact the jobs, and yield a line about each. A job is a uid or NAMESPACE/NAME.

    Raises:
        NotPossible: a job is not stored, or has not ended. Those before it are redacted.
    """
    for job in jobs:
        for uid in await _uids(db, job):
            try:
                row = await redaction.redact(db, uid, actor=REDACTION, at=SystemClock().now())
            except DomainError as error:
                raise NotPossible(f"{job}: {error.message}") from error
            yield f"redacted {row.namespace}/{row.name} {uid}"


async def _uids(db: Database, job: str) -> Sequence[UUID]:
    namespace, slash, name = job.partition("/")
    if not slash:
        try:
            return [UUID(job)]
        except ValueError:
            raise NotPossible(f"{job} is neither NAMESPACE/NAME nor the uid of a job") from None
    found = await redaction.named(db, namespace, name)
    if not found:
        raise NotPossible(f"no ended job {name} is stored in the namespace {namespace}")
    return found
