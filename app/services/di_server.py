"""The service behind the API of DI-orchestrator's server, which the pods of a DIJob call.

They list the addresses of the job's replicas, resize the job, and report profilings. They authenticate with the token
in the environment of the job's pods, which is valid for this job only.
"""

from collections.abc import Mapping
from typing import Any, Final

from app.db.jobs import edits, replicas
from app.db.jobs.rows import STORED_JOBS, JobRow
from app.db.objects import resources
from app.db.objects.resources import StoredRow
from app.db.postgres.engine import Database
from app.domain.access.actors import Actor
from app.domain.access.credentials import is_credential_of
from app.domain.errors import Conflict, InvalidManifest, NotFound, Unauthenticated
from app.domain.kinds.di_job import DIJobKind, members
from app.services.access import bearer
from app.services.editing.jobs import JobEditor

_REASON: Final = "requested by the job itself"


def actor_of(job: JobRow) -> Actor:
    """Return the actor of requests with the token of the job."""
    return Actor.job(str(job.uid), job.name)


class DiServer:
    """Serves the pods of DIJobs. The `JobRow` argument of its methods is the result of `identify`."""

    def __init__(self, db: Database, editor: JobEditor, installation_key: bytes) -> None:
        self._db = db
        self._editor = editor
        self._key = installation_key

    async def identify(self, namespace: str, name: str, authorization: str | None) -> JobRow:
        """Return the DIJob of this name if the token is its own.

        Raises:
            Unauthenticated: the token is missing or not that of this job. The answer is the same if there is no such
                job. NotFound: the job of this token is of another kind.
        """
        token = bearer(authorization)
        job = await resources.find(self._db, STORED_JOBS, namespace, name)
        if job is None or not is_credential_of(self._key, str(job.uid), token):
            raise Unauthenticated("there is no such job, or the token is not its own", code="InvalidToken")
        if job.api_version not in DIJobKind.api_versions:
            raise NotFound("the job is not a DIJob")
        return job

    async def addresses(self, job: JobRow) -> list[str]:
        """Return host:port of each replica of the job, by global rank."""
        found = await replicas.of(self._db, job.uid)
        return members.addresses(job.manifest, [stored.replica for stored in found])

    async def resize(self, job: JobRow, by: int, task: str | None) -> None:
        """Add `by` replicas to the task, or remove them if negative. `task` may be None if only one can be resized.

        Raises:
            InvalidManifest: there is no such task, or several tasks can be resized and none is named.
            Conflict: the job has ended, or the size would exceed its bounds.
        """
        resized_task = members.task_to_resize(job.manifest, task)

        def require_same_job(found: StoredRow) -> None:
            # The token belongs to one job and must not resize a later one of the same name.
            if found.uid != job.uid:
                raise Conflict("the job has ended and another one has its name", code="AlreadyFinished")

        try:
            await self._editor.add(
                job.namespace,
                job.name,
                {resized_task: by},
                actor=actor_of(job),
                reason=_REASON,
                precondition=require_same_job,
            )
        except InvalidManifest as refused:
            raise Conflict(refused.message, code=refused.code, errors=refused.errors) from refused

    async def report(self, job: JobRow, profilings: Mapping[str, Any]) -> None:
        """Replace the reported profilings of the job.

        Raises:
            Conflict: the job has ended or was deleted.
        """
        await edits.set_reported(self._db, job.uid, profilings)
