"""Edits and deletions of the objects of any resource, with optimistic concurrency.

An edit reads a version of the object, computes the next one without a lock, and stores it if the version is still
current. Otherwise it starts again.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeAlias, TypeVar

from app.base.clock import Clock
from app.base.offload import offload_if_large
from app.db.objects import resources
from app.db.objects.history import EDITED
from app.db.objects.resources import Check, Row, Stored, StoredRow
from app.db.postgres.engine import Database
from app.domain.access.actors import Actor
from app.domain.errors import FieldError, InvalidManifest, PreconditionFailed, Unavailable, no_such
from app.domain.kinds.envelope import postable
from app.domain.plan import Manifest
from app.services.hints import Hint

PostedChange: TypeAlias = Callable[[Manifest | None], Manifest | None]
"""Returns the posted manifest after an edit from that before it. None stands for an unknown one."""
_Edit = TypeVar("_Edit")

# An edit starts again at most this often. Each time, another edit of the same object was stored, so this many in a row
# come from clients that fight over the object, and not from chance.
MAX_TRIES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResult(Generic[Row]):
    """The object after an edit, a cancel or a deletion.

    `pending` says that the controller has still to carry the request out.
    """

    row: Row
    pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest(Generic[Row]):
    """A requested edit.

    Args:
        change: computes the next version from the row. The result has a field `manifest`.
        reason: the reason in the history row.
        message: the message in the history row.
        precondition: raises PreconditionFailed or Conflict if the row must not be edited.
        keeps_objects: whether the edit leaves the number of replicas and their names as they are.
        change_posted: the change of the posted manifest; without it, that stays.
        document: the document that the client sent, if any. Large documents are processed in a thread.
        is_request: whether the edit requests something of the controller even if the manifest stays.
    """

    namespace: str
    name: str
    change: Callable[[Row], Any]
    actor: Actor
    reason: str = EDITED
    message: str = ""
    precondition: Callable[[Row], None]
    keeps_objects: bool = False
    change_posted: PostedChange | None = None
    document: Any = None
    is_request: Callable[[Row], bool] = lambda _: False


class Editor(ABC, Generic[Row, _Edit]):
    """Stores edits and deletions of the objects of one resource as intent, which the controller carries out.

    `what` is the word for an object in messages. `hint` announces a change to the controller.
    """

    def __init__(self, db: Database, stored: Stored[Row], what: str, clock: Clock, hint: Hint) -> None:
        self._db = db
        self._stored = stored
        self._what = what
        self._clock = clock
        self._hint = hint

    @abstractmethod
    def require_editable(self, row: Row) -> None:
        """Raise Conflict if the object has ended or was deleted."""

    @abstractmethod
    def revise(self, row: Row, document: Manifest, *, administers: bool) -> Any:
        """Validate the document as the next version of the object. The result has it, with defaults, as `manifest`.

        `administers` says whether the caller may exempt the object from the pod policy.

        Raises:
            InvalidManifest: the document is not valid, or changes immutable fields.
            Forbidden: the document violates the pod policy in a place where the stored manifest does not.
        """

    @abstractmethod
    def edit_of(self, row: Row, edited: Any, posted: Manifest | None, request: EditRequest[Row]) -> _Edit:
        """Return the arguments of `store`: `edited` from `change`, and `posted` from `change_posted` of the request."""

    @abstractmethod
    async def store(self, row: Row, edit: _Edit) -> Row:
        """Store the edit. Raise PreconditionFailed if the row has another version by then."""

    @abstractmethod
    async def request_deletion(self, row: Row, *, actor: Actor, at: datetime, reason: str, precondition: Check) -> Row:
        """Request the deletion of the object. Check the precondition when the row is locked."""

    @abstractmethod
    def is_carried_out(self, row: Row) -> bool:
        """Whether the controller has carried out the current generation."""

    async def replace(
        self,
        namespace: str,
        name: str,
        document: Manifest,
        *,
        actor: Actor,
        precondition: Check,
        administers: bool = False,
    ) -> EditResult[Row]:
        """Replace the manifest. Immutable fields must stay."""

        def change(row: Row) -> Any:
            return self.revise(row, _of_same(row, document), administers=administers)

        return await self.edit(
            EditRequest(
                namespace=namespace,
                name=name,
                change=change,
                actor=actor,
                precondition=precondition,
                change_posted=lambda _: document,
                document=document,
            )
        )

    async def merge(
        self,
        namespace: str,
        name: str,
        patch: dict[str, Any],
        *,
        actor: Actor,
        precondition: Check,
        administers: bool = False,
    ) -> EditResult[Row]:
        """Apply a JSON merge patch (RFC 7396) to the stored manifest."""

        def change(row: Row) -> Any:
            document = merge_patch(postable(row.manifest), patch)
            return self.revise(row, _of_same(row, document), administers=administers)

        return await self.edit(
            EditRequest(
                namespace=namespace,
                name=name,
                change=change,
                actor=actor,
                precondition=precondition,
                change_posted=lambda posted: posted and merge_patch(posted, patch),
                document=patch,
            )
        )

    async def delete(
        self, namespace: str, name: str, *, actor: Actor, reason: str = "", precondition: Check
    ) -> EditResult[Row]:
        """Request the deletion. Record and history stay. A second request changes nothing."""
        row = await self.current(namespace, name)
        precondition(row)
        if row.deleted_at is None:
            # Another change may come between the read and the write, which therefore checks the precondition again.
            row = await self.request_deletion(
                row, actor=actor, at=self._clock.now(), reason=reason, precondition=precondition
            )
            self._hint()
        return EditResult(row=row, pending=row.is_in_cluster)

    async def current(self, namespace: str, name: str) -> Row:
        """Return the object with this name, or else the newest one that had it. Raise NotFound if there is none."""
        row = await resources.find(self._db, self._stored, namespace, name)
        if row is None:
            raise no_such(self._what)
        return row

    async def edit(self, request: EditRequest[Row]) -> EditResult[Row]:
        """Compute the edit on the current version and store it.

        Raises:
            Conflict: the object cannot be edited now.
            Unavailable: other edits came first every time, and nothing was stored.
        """
        for _ in range(MAX_TRIES):
            row = await self.current(request.namespace, request.name)
            request.precondition(row)
            self.require_editable(row)
            # If another edit is stored between the two reads, the version is not current, and `store` refuses.
            posted = await resources.read_posted(self._db, self._stored, row.uid) if request.change_posted else None
            edit = await offload_if_large((row.manifest, request.document), self._compute, row, posted, request)
            # Nothing is stored, so version and ETag stay.
            if edit is None:
                return EditResult(row=row, pending=not self.is_carried_out(row))
            try:
                changed = await self.store(row, edit)
            # Another edit was stored first. If the client sent If-Match, its precondition refuses the next iteration.
            except PreconditionFailed:
                continue
            self._hint()
            return EditResult(row=changed, pending=True)
        raise Unavailable(
            f"other edits of the {self._what} came first every time: repeat the request", code="Contended"
        )

    def _compute(self, row: Row, posted: Manifest | None, request: EditRequest[Row]) -> _Edit | None:
        """Return the edit, or None if it would change nothing."""
        edited = request.change(row)
        if edited.manifest == row.manifest and not request.is_request(row):
            return None
        return self.edit_of(row, edited, request.change_posted(posted) if request.change_posted else None, request)


def merge_patch(target: Any, patch: Any) -> Any:
    """Return `target` with the JSON merge patch (RFC 7396): null removes a field, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _of_same(row: StoredRow, document: Manifest) -> Manifest:
    """Return the document of an edit, and fill in the name of the object if the document omits it.

    Raises:
        InvalidManifest: the document has another API version, kind or name.
    """
    kept = row.manifest
    errors = [
        FieldError(pointer=f"/{field}", code="Immutable", detail="the field is immutable", accepted=str(kept[field]))
        for field in ("apiVersion", "kind")
        if document.get(field) != kept[field]
    ]
    metadata = document.get("metadata")
    metadata = {} if metadata is None else metadata
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name is not None and name != row.name:
        errors.append(
            FieldError(pointer="/metadata/name", code="Immutable", detail="the field is immutable", accepted=row.name)
        )
    if errors:
        raise InvalidManifest("the edit is of another object", code="ImmutableField", errors=errors)
    return {**document, "metadata": {**metadata, "name": row.name}} if isinstance(metadata, dict) else document
