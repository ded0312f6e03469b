"""Edits of jobs: manifest, size, pause, cancel and delete."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, TypeAlias

from typing_extensions import override

from app.base.clock import Clock
from app.db.jobs import edits
from app.db.jobs.rows import STORED_JOBS, JobRow
from app.db.objects import resources
from app.db.objects.resources import Check
from app.db.postgres.engine import Database
from app.domain.access.actors import Actor
from app.domain.errors import Conflict, InvalidManifest, PreconditionFailed, Problems, pointer_to
from app.domain.kinds.envelope import FLAGS, postable
from app.domain.kinds.job_kind import Accepted, Scaling
from app.domain.kubernetes import labels
from app.domain.plan import Manifest
from app.domain.planning import Planner
from app.domain.redaction import is_redacted
from app.domain.resize import Resize, plan_resize
from app.domain.vocabulary import JobPhase, Reason
from app.services.editing.objects import MAX_TRIES, Editor, EditRequest, EditResult, merge_patch
from app.services.editing.scaling import SizesWanted, choose_sizes, resize, scaling_of, shift_sizes
from app.services.hints import Hint

_NAMES: Final = ("name", "generateName")
_Sizes: TypeAlias = Callable[[Scaling], Mapping[str, int]]


class JobEditor(Editor[JobRow, edits.JobEdit]):
    """Edits jobs: what every resource has, and scale, pause, cancel and retry, which only jobs have."""

    def __init__(self, db: Database, planner: Planner, clock: Clock, hint: Hint) -> None:
        super().__init__(db, STORED_JOBS, "job", clock, hint)
        self._planner = planner

    @override
    def require_editable(self, row: JobRow) -> None:
        if row.deleted_at is not None:
            raise Conflict("the job has been deleted", code="Deleted")
        if row.has_ended:
            raise Conflict(
                f"the job has ended as {row.status.phase}: nothing of it can change but its annotation {labels.KEEP}",
                code="AlreadyFinished",
            )

    @override
    async def merge(
        self,
        namespace: str,
        name: str,
        patch: dict[str, Any],
        *,
        actor: Actor,
        precondition: Check,
        administers: bool = False,
    ) -> EditResult[JobRow]:
        """Apply a JSON merge patch. That of an ended job may only pin its record, or unpin it."""
        if is_of_pin(patch):
            for _ in range(MAX_TRIES):
                row = await self.current(namespace, name)
                precondition(row)
                if not row.has_ended or row.deleted_at is not None:
                    break
                with suppress(PreconditionFailed):  # another change was stored first
                    return await self._pin(row, patch, actor)
        return await super().merge(
            namespace, name, patch, actor=actor, precondition=precondition, administers=administers
        )

    async def _pin(self, row: JobRow, patch: dict[str, Any], actor: Actor) -> EditResult[JobRow]:
        """Change the annotation of an ended job that pins it. Its manifest is not validated again: it has no effect.

        Raises:
            InvalidManifest: the value is neither true nor false.
            PreconditionFailed: the job has changed since it was read.
        """
        value = patch["metadata"]["annotations"][labels.KEEP]
        if value not in (*FLAGS, None):
            problems = Problems()
            pointer = pointer_to("/metadata/annotations", labels.KEEP)
            problems.add(pointer, "InvalidAnnotation", "the value is neither", " or ".join(FLAGS))
            problems.raise_if_any()
        manifest = merge_patch(row.manifest, patch)
        if manifest == row.manifest:
            return EditResult(row=row, pending=False)
        posted = await resources.read_posted(self._db, self._stored, row.uid)
        pin = edits.Pin(
            manifest=manifest,
            posted=posted and merge_patch(posted, patch),
            expected_version=row.version,
            actor=actor,
            at=self._clock.now(),
        )
        return EditResult(row=await edits.pin(self._db, row.uid, pin), pending=False)

    @override
    def is_carried_out(self, row: JobRow) -> bool:
        return row.status.observed_generation >= row.generation

    @override
    async def request_deletion(
        self, row: JobRow, *, actor: Actor, at: datetime, reason: str, precondition: Check
    ) -> JobRow:
        """Cancel the job if it is live, and request the removal of its objects."""
        return await edits.request_deletion(self._db, row.uid, actor=actor, at=at, reason=reason, check=precondition)

    @override
    async def store(self, row: JobRow, edit: edits.JobEdit) -> JobRow:
        return await edits.edit(self._db, row.uid, edit, self._planner.limits.pods)

    async def scale(
        self,
        namespace: str,
        name: str,
        wanted: SizesWanted,
        *,
        actor: Actor,
        reason: str = "",
        precondition: Check,
    ) -> EditResult[JobRow]:
        """Set the sizes of tasks. A job that has these sizes does not change.

        Raises:
            InvalidManifest: the request is ambiguous, or exceeds the bounds of the job.
            Conflict: the job cannot be scaled, has ended or is being cancelled, or needs a name that another job uses.
        """
        request = self._scale_request(
            namespace, name, lambda scaling: choose_sizes(scaling, wanted), actor, reason, precondition
        )
        return await self.edit(request)

    async def add(
        self,
        namespace: str,
        name: str,
        deltas: Mapping[str, int],
        *,
        actor: Actor,
        reason: str = "",
        precondition: Check,
    ) -> EditResult[JobRow]:
        """Change the sizes of tasks by these numbers of replicas. Concurrent changes add up.

        Raises:
            InvalidManifest, Conflict: as `scale`.
        """
        request = self._scale_request(
            namespace, name, lambda scaling: shift_sizes(scaling, deltas), actor, reason, precondition
        )
        return await self.edit(request)

    async def pause(
        self, namespace: str, name: str, *, paused: bool, actor: Actor, message: str, precondition: Check
    ) -> EditResult[JobRow]:
        """Pause or resume the job. A job that is in this state does not change."""

        def activates(row: JobRow) -> bool:
            # Kueue has paused the job: its manifest requests no pause, and its kind need not support one.
            return not paused and row.status.reason == Reason.DEACTIVATED

        def change(row: JobRow) -> Accepted[Any]:
            stored = self._read(row)
            if activates(row) and not stored.kind.supports_pause:
                return stored
            return stored.kind.with_pause(stored, paused=paused)

        return await self.edit(
            EditRequest(
                namespace=namespace,
                name=name,
                change=change,
                actor=actor,
                reason="PauseRequested" if paused else "ResumeRequested",
                message=message,
                precondition=precondition,
                keeps_objects=True,
                is_request=activates,
            )
        )

    async def cancel(
        self, namespace: str, name: str, *, actor: Actor, reason: str, precondition: Check
    ) -> EditResult[JobRow]:
        """Request the end of a live job, or of the replicas that still run after the end. A second request changes
        nothing.

        Raises:
            Conflict: the job has ended in another way, or was deleted.
        """
        job = await self.current(namespace, name)
        precondition(job)
        # Before the check for an ended job: a repeated cancel succeeds even if the job has ended meanwhile.
        if job.status.phase is JobPhase.CANCELLED or job.cancel_requested_at is not None:
            return EditResult(row=job, pending=not job.status.phase.is_terminal or job.status.still_running > 0)
        if job.deleted_at is not None or not job.status.still_running:
            self.require_editable(job)
        # Not an edit: a cancel does not depend on the manifest, so it need not start again after another edit.
        changed = await edits.request_cancel(
            self._db, job.uid, actor=actor, at=self._clock.now(), reason=reason, check=precondition
        )
        self._hint()
        return EditResult(row=changed, pending=True)

    async def retry_documents(self, job: JobRow, name: str | None) -> tuple[Manifest, Manifest | None]:
        """Return the manifest of a new job that repeats this one, complete and as it was posted, if that is known.

        Without `name`, the new name is generated. The new job is not pinned, whether this one is or not.

        Raises:
            Conflict: the job has not ended, or its manifest was redacted.
        """
        if not job.status.phase.is_terminal:
            raise Conflict(
                f"the job is {job.status.phase}: only a job that has ended can be retried", code="NotFinished"
            )
        if is_redacted(job.manifest):
            raise Conflict(
                "values of the job were redacted: submit its manifest with these values",
                code="Redacted",
            )
        accepted = self._read(job)
        # A job that was cancelled while it was paused must run when it is retried.
        if accepted.kind.supports_pause:
            accepted = accepted.kind.with_pause(accepted, paused=False)
        named = {"name": name} if name is not None else {"generateName": f"{_stem(job.name)}-"}
        posted = await resources.read_posted(self._db, self._stored, job.uid)
        return _with_name(postable(accepted.manifest), named), posted and _with_name(posted, named)

    @override
    def edit_of(
        self, row: JobRow, edited: Accepted[Any], posted: Manifest | None, request: EditRequest[JobRow]
    ) -> edits.JobEdit:
        manifest = edited.manifest
        # Saves two plans, which are slow for a large manifest.
        if request.keeps_objects:
            planned = Resize(scales=(), names=(), pods=0)
        else:
            planned = plan_resize(self._planner, str(row.uid), self._read(row), edited, request.message)
        return edits.JobEdit(
            namespace=row.namespace,
            manifest=manifest,
            posted=posted,
            labels=manifest["metadata"].get("labels", {}),
            actor=request.actor,
            at=self._clock.now(),
            expected_version=row.version,
            reason=request.reason,
            message=request.message,
            scales=planned.scales,
            is_request=request.is_request(row),
            added_pods=planned.pods,
            names=planned.names,
        )

    @override
    def revise(self, row: JobRow, document: Manifest, *, administers: bool) -> Accepted[Any]:
        kept = row.manifest
        namespace = kept["metadata"]["namespace"]
        # The name never changes. `str` draws an empty suffix.
        draft = self._planner.draft(document, namespace, str, stored=kept, administers=administers)
        errors = draft.accepted.kind.changes(kept, draft.manifest)
        if errors:
            raise InvalidManifest("the edit changes immutable fields", code="ImmutableField", errors=errors)
        return draft.accepted

    def _read(self, row: JobRow) -> Accepted[Any]:
        return self._planner.read(row.manifest, row.uid, row.generation)

    def _scale_request(
        self, namespace: str, name: str, sizes: _Sizes, actor: Actor, reason: str, precondition: Check
    ) -> EditRequest[JobRow]:
        def require_live(job: JobRow) -> None:
            precondition(job)
            self.require_editable(job)
            if job.cancel_requested_at is not None:
                raise Conflict("the job is being cancelled, so it cannot be scaled", code="Cancelling")

        def change(row: JobRow) -> Accepted[Any]:
            stored = self._read(row)
            scaling = scaling_of(stored)
            return resize(stored, scaling, sizes(scaling))

        return EditRequest(
            namespace=namespace,
            name=name,
            change=change,
            actor=actor,
            reason="ScaleRequested",
            message=reason,
            precondition=require_live,
        )


def is_of_pin(patch: Any) -> bool:
    """Return whether a merge patch concerns nothing but the annotation that pins a job."""
    at: Any = patch
    for field in ("metadata", "annotations"):
        if not isinstance(at, dict) or set(at) != {field}:
            return False
        at = at[field]
    return isinstance(at, dict) and set(at) == {labels.KEEP}


def _with_name(manifest: Manifest, named: Manifest) -> Manifest:
    """Return the manifest with another name, and without the pin, which is one of the record of the former job."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _NAMES}
    if labels.KEEP in (metadata.get("annotations") or {}):
        metadata["annotations"] = {key: text for key, text in metadata["annotations"].items() if key != labels.KEEP}
    return {**manifest, "metadata": {**metadata, **named}}


def _stem(name: str) -> str:
    """Return the name without a generated suffix, so that the name does not grow with each retry of a retry."""
    # Generated suffixes have five characters of Kubernetes' alphabet, which lacks vowels, 0 and 1.
    head, _, tail = name.rpartition("-")
    return head if head and len(tail) == 5 and not set("aeiou01") & set(tail) else name
