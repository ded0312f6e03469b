"""What people change of a job that exists: its manifest, its size, whether it is paused, and that it shall end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from app.clock import Clock
from app.db import jobs
from app.db.engine import Database
from app.db.job_rows import JobRow
from app.domain.dialects.base import Accepted, Scaling
from app.domain.dialects.envelope import as_posted
from app.domain.errors import Conflict, FieldError, InvalidManifest, NotFound, PreconditionFailed
from app.domain.plan import Manifest
from app.domain.planning import Planner
from app.domain.vocabulary import JobPhase
from app.offload import offloaded_if_large
from app.services.scaling import Growth, SizesWanted, growth, resized, scaling_of, shifted_sizes, wanted_sizes
from app.services.submitting import Hint

# Raises PreconditionFailed when the job is not the version that the caller decided on.
Precondition: TypeAlias = Callable[[JobRow], None]
_Change: TypeAlias = Callable[[Accepted[Any]], Accepted[Any]]
_Sizes: TypeAlias = Callable[[Scaling], Mapping[str, int]]

# Without a precondition an edit that met another is decided again on what that one left.
_MAX_TRIES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The job afterwards; `pending` says that the cluster has yet to carry it out."""

    job: JobRow
    pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """An edit that was asked for. `keeps_objects`: it changes neither how many replicas there are nor what they need.

    `reason` and `message` are for the job's history. `document` is what the caller sent, if anything.
    """

    namespace: str
    name: str
    change: _Change
    actor: str
    reason: str = "Edited"
    message: str = ""
    precondition: Precondition
    keeps_objects: bool = False
    document: Any = None


class JobControl:
    """One transaction each. The controller learns of it by the intent that is left in the job's row."""

    def __init__(self, db: Database, planner: Planner, clock: Clock, hint: Hint) -> None:
        self._db = db
        self._planner = planner
        self._clock = clock
        self._hint = hint

    async def replace(
        self,
        namespace: str,
        name: str,
        document: Manifest,
        *,
        actor: str,
        precondition: Precondition,
        administers: bool = False,
    ) -> Changed:
        """The whole manifest anew, within what the kind lets be changed."""

        def change(stored: Accepted[Any]) -> Accepted[Any]:
            return self._revised(stored.manifest, document, administers=administers)

        return await self._edit(
            _Request(
                namespace=namespace,
                name=name,
                change=change,
                actor=actor,
                precondition=precondition,
                document=document,
            )
        )

    async def merge(
        self,
        namespace: str,
        name: str,
        patch: dict[str, Any],
        *,
        actor: str,
        precondition: Precondition,
        administers: bool = False,
    ) -> Changed:
        """RFC 7396 on the stored manifest."""

        def change(stored: Accepted[Any]) -> Accepted[Any]:
            patched = merge_patch(as_posted(stored.manifest), patch)
            return self._revised(stored.manifest, patched, administers=administers)

        return await self._edit(
            _Request(
                namespace=namespace, name=name, change=change, actor=actor, precondition=precondition, document=patch
            )
        )

    async def scale(
        self,
        namespace: str,
        name: str,
        wanted: SizesWanted,
        *,
        actor: str,
        reason: str = "",
        precondition: Precondition,
    ) -> Changed:
        """Give tasks these sizes; what is so already stays so.

        Raises:
            InvalidManifest: the request is unclear or goes beyond what the job allows.
            Conflict: the job cannot be scaled, is over or about to be, or another one uses a name that it would need.
        """

        def sizes(scaling: Scaling) -> Mapping[str, int]:
            return wanted_sizes(scaling, wanted)

        return await self._edit(_scale_request(namespace, name, sizes, actor, reason, precondition))

    async def add(
        self,
        namespace: str,
        name: str,
        deltas: Mapping[str, int],
        *,
        actor: str,
        reason: str = "",
        precondition: Precondition,
    ) -> Changed:
        """Give tasks so many more replicas than they shall have by then, or fewer: of two that add, both count.

        Raises:
            InvalidManifest, Conflict: as `scale`.
        """

        def sizes(scaling: Scaling) -> Mapping[str, int]:
            return shifted_sizes(scaling, deltas)

        return await self._edit(_scale_request(namespace, name, sizes, actor, reason, precondition))

    async def pause(
        self, namespace: str, name: str, *, paused: bool, actor: str, message: str, precondition: Precondition
    ) -> Changed:
        """Pause or resume; what is so already stays so."""

        def change(stored: Accepted[Any]) -> Accepted[Any]:
            return stored.dialect.with_pause(stored, paused=paused)

        return await self._edit(
            _Request(
                namespace=namespace,
                name=name,
                change=change,
                actor=actor,
                reason="PauseRequested" if paused else "ResumeRequested",
                message=message,
                precondition=precondition,
                keeps_objects=True,
            )
        )

    async def cancel(
        self, namespace: str, name: str, *, actor: str, reason: str, precondition: Precondition
    ) -> Changed:
        """Ask for the end of a job that lives."""
        job = await self.current(namespace, name)
        precondition(job)
        if job.status.phase is JobPhase.CANCELLED or job.cancel_requested_at is not None:
            return Changed(job=job, pending=not job.status.phase.is_terminal)
        _refuse_if_over(job)
        changed = await jobs.request_cancel(self._db, job.uid, actor=actor, at=self._clock.now(), reason=reason)
        self._hint()
        return Changed(job=changed, pending=True)

    async def delete(
        self, namespace: str, name: str, *, actor: str, reason: str, precondition: Precondition
    ) -> Changed:
        """Cancel it if it lives, take all its objects away, keep its history."""
        job = await self.current(namespace, name)
        precondition(job)
        if job.deleted_at is None:
            now = self._clock.now()
            job = await jobs.request_remove(self._db, job.uid, actor=actor, at=now, delete=True, reason=reason)
            self._hint()
        return Changed(job=job, pending=job.status.gone_at is None)

    async def current(self, namespace: str, name: str) -> JobRow:
        return _present(await jobs.find(self._db, namespace, name))

    def retry_document(self, job: JobRow, name: str | None) -> Manifest:
        """The manifest for another go at a job that has ended."""
        if not job.status.phase.is_terminal:
            raise Conflict(f"the job is {job.status.phase}: only a job that has ended is retried", code="NotFinished")
        accepted = self._planner.read(job.manifest, job.uid, job.generation)
        if accepted.dialect.supports_pause:
            accepted = accepted.dialect.with_pause(accepted, paused=False)
        manifest = accepted.manifest
        metadata = {key: value for key, value in manifest["metadata"].items() if key != "name"}
        named = {"name": name} if name is not None else {"generateName": f"{_stem(job.name)}-"}
        return {**as_posted(manifest), "metadata": {**metadata, **named}}

    async def _edit(self, request: _Request) -> Changed:
        for _ in range(_MAX_TRIES):
            job = await self.current(request.namespace, request.name)
            request.precondition(job)
            _refuse_if_over(job)
            edit = await offloaded_if_large((job.manifest, request.document), self._decide, job, request)
            if edit is None:
                return Changed(job=job, pending=job.status.observed_generation < job.generation)
            try:
                changed = await jobs.edit(self._db, job.uid, edit, self._planner.limits.pods)
            except PreconditionFailed:
                continue
            self._hint()
            return Changed(job=changed, pending=True)
        raise Conflict("the job changes faster than it can be edited: repeat it", code="Contended")

    def _decide(self, job: JobRow, request: _Request) -> jobs.Edit | None:
        """The edit of the job as it is now; None where it is as asked for."""
        stored = self._planner.read(job.manifest, job.uid, job.generation)
        edited = request.change(stored)
        manifest = edited.manifest
        if manifest == job.manifest:
            return None
        if request.keeps_objects:
            grown = Growth(scales=(), names=(), pods=0)
        else:
            grown = growth(self._planner, str(job.uid), stored, edited, request.message)
        return jobs.Edit(
            manifest=manifest,
            labels=manifest["metadata"].get("labels", {}),
            actor=request.actor,
            at=self._clock.now(),
            expected_version=job.version,
            reason=request.reason,
            message=request.message,
            scales=grown.scales,
            namespace=job.namespace,
            added_pods=grown.pods,
            names=grown.names,
        )

    def _revised(self, stored: Manifest, document: Manifest, *, administers: bool) -> Accepted[Any]:
        """The document as the next version of what is stored.

        Raises:
            InvalidManifest: it is not valid, or changes what the kind does not let be changed.
            Forbidden: it violates the pod policy where the stored one does not.
        """
        _refuse_another_job(stored, document)
        metadata = document.get("metadata")
        if isinstance(metadata, dict):
            document = {**document, "metadata": {**metadata, "name": stored["metadata"]["name"]}}
        namespace = stored["metadata"]["namespace"]
        draft = self._planner.draft(document, namespace, str, stored=stored, administers=administers)
        errors = draft.accepted.dialect.changes(stored, draft.manifest)
        if errors:
            raise InvalidManifest("the edit changes what cannot be changed", code="ImmutableField", errors=errors)
        return draft.accepted


def _scale_request(
    namespace: str, name: str, sizes: _Sizes, actor: str, reason: str, precondition: Precondition
) -> _Request:
    def goes_on(job: JobRow) -> None:
        precondition(job)
        _refuse_if_over(job)
        if job.cancel_requested_at is not None:
            raise Conflict("the job is being cancelled: it will not have another size", code="Cancelling")

    def change(stored: Accepted[Any]) -> Accepted[Any]:
        scaling = scaling_of(stored)
        return resized(stored, scaling, sizes(scaling))

    return _Request(
        namespace=namespace,
        name=name,
        change=change,
        actor=actor,
        reason="ScaleRequested",
        message=reason,
        precondition=goes_on,
    )


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7396: null removes, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _refuse_another_job(stored: Manifest, document: Manifest) -> None:
    errors = [
        FieldError(pointer=f"/{field}", code="Immutable", detail="may not be changed", accepted=str(stored[field]))
        for field in ("apiVersion", "kind")
        if document.get(field) != stored[field]
    ]
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name is not None and name != stored["metadata"]["name"]:
        accepted = str(stored["metadata"]["name"])
        errors.append(
            FieldError(pointer="/metadata/name", code="Immutable", detail="may not be changed", accepted=accepted)
        )
    if errors:
        raise InvalidManifest("the edit is of another job", code="ImmutableField", errors=errors)


def _refuse_if_over(job: JobRow) -> None:
    if job.deleted_at is not None:
        raise Conflict("the job has been deleted", code="Deleted")
    if job.status.phase.is_terminal:
        raise Conflict(f"the job has ended as {job.status.phase}", code="AlreadyFinished")


def _present(job: JobRow | None) -> JobRow:
    if job is None:
        raise NotFound("there is no such job")
    return job


def _stem(name: str) -> str:
    """A retry of a retry is called like the first."""
    head, _, tail = name.rpartition("-")
    return head if head and len(tail) == 5 and not set("aeiou01") & set(tail) else name
