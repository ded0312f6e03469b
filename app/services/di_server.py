"""What DI-orchestrator's server does for the pods of a DIJob: tell them of each other, resize their job, keep what they
report.

Each of the jobs is known by the token in its own pods' environment; nobody else is let in.
"""

from collections.abc import Mapping
from typing import Any, Final

from app.db import resources
from app.db.engine import Database
from app.db.jobs import edits, replicas
from app.db.jobs.rows import STORED_JOBS, JobRow
from app.db.resources import StoredRow
from app.domain.dialects.di_job import DIJobDialect, members
from app.domain.errors import Conflict, InvalidManifest, NotFound, Unauthenticated
from app.services.access import bearer
from app.services.control import JobControl
from app.services.credentials import JobCredentials

_REASON: Final = "asked for by the job itself"


class DiServer:
    """One a process. A `JobRow` that is passed in is a caller's own, as `identify` has found it."""

    def __init__(self, db: Database, control: JobControl, credentials: JobCredentials) -> None:
        self._db = db
        self._control = control
        self._credentials = credentials

    async def identify(self, namespace: str, name: str, authorization: str | None) -> JobRow:
        """The DIJob of that name, if the token is its own. Nobody else learns whether there is one.

        Raises:
            Unauthenticated: there is no token, or none that opens a job of that name.
            NotFound: it opens one of another kind.
        """
        token = bearer(authorization)
        job = await resources.find(self._db, STORED_JOBS, namespace, name)
        if job is None or not self._credentials.opens(job.uid, token):
            raise Unauthenticated("there is no such job, or the token is not its own", code="InvalidToken")
        if job.api_version not in DIJobDialect.api_versions:
            raise NotFound("the job is not a DIJob")
        return job

    async def addresses(self, job: JobRow) -> list[str]:
        """host:port of the job's replicas by global rank."""
        found = await replicas.of(self._db, job.uid)
        return members.addresses(job.manifest, [one.replica for one in found])

    async def resize(self, job: JobRow, by: int, asked: str | None) -> None:
        """Let the task have so many more, or fewer, replicas than it shall have now.

        Raises:
            InvalidManifest: there is no such task, or the request does not say which one.
            Conflict: the job is over, or would be larger or smaller than it may.
        """
        task = members.task_to_resize(job.manifest, asked)

        def the_same(found: StoredRow) -> None:
            if found.uid != job.uid:
                raise Conflict("the job has ended and another one has its name", code="AlreadyFinished")

        try:
            await self._control.add(
                job.namespace, job.name, {task: by}, actor=f"job/{job.name}", reason=_REASON, precondition=the_same
            )
        except InvalidManifest as refused:
            raise Conflict(refused.message, code=refused.code, errors=refused.errors) from refused

    def profilings(self, job: JobRow) -> Mapping[str, Any]:
        """What the job has reported last."""
        return job.reported or {}

    async def report(self, job: JobRow, profilings: Mapping[str, Any]) -> None:
        """Keep this instead of what was reported before.

        Raises:
            Conflict: the job has ended or was deleted: its token no longer writes anything.
        """
        await edits.set_reported(self._db, job.uid, profilings)
