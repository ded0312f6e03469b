"""Edits and deletions of the objects of any resource: one transaction each, decided again if another came first."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeAlias, TypeVar

from app.clock import Clock
from app.db import resources
from app.db.engine import Database
from app.db.history import EDITED
from app.db.resources import Row, Stored, StoredRow
from app.domain.dialects.envelope import as_posted
from app.domain.errors import Conflict, FieldError, InvalidManifest, NotFound, PreconditionFailed
from app.domain.plan import Manifest
from app.offload import offloaded_if_large
from app.services.submitting import Hint

# Raises PreconditionFailed when the row is not the version that the caller decided on.
Precondition: TypeAlias = Callable[[StoredRow], None]
_Edit = TypeVar("_Edit")

# Without a precondition an edit that met another is decided again on what that one left.
_MAX_TRIES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed(Generic[Row]):
    """The row afterwards; `pending` says that the cluster has yet to carry it out."""

    row: Row
    pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest(Generic[Row]):
    """An edit that was asked for. `keeps_objects`: it changes neither how many replicas there are nor what they need.

    `change` makes of the row something that has the new `manifest`. `reason` and `message` are for the history.
    `document` is what the caller sent, if anything.
    """

    namespace: str
    name: str
    change: Callable[[Row], Any]
    actor: str
    reason: str = EDITED
    message: str = ""
    precondition: Callable[[Row], None]
    keeps_objects: bool = False
    document: Any = None


class Editor(ABC, Generic[Row, _Edit]):
    """Changes the objects of one resource. `what` names one of them.

    The controller learns of a change by the intent that is left in the row.
    """

    def __init__(self, db: Database, where: Stored[Row], what: str, clock: Clock, hint: Hint) -> None:
        self._db = db
        self._where = where
        self._what = what
        self._clock = clock
        self._hint = hint

    @abstractmethod
    def require_editable(self, row: Row) -> None:
        """Raises Conflict for an object that has ended or was deleted."""

    @abstractmethod
    def revised(self, row: Row, document: Manifest, *, administers: bool) -> Any:
        """The document, which names the object of the row, as the next version of the manifest: something
        that has it as `manifest`.

        Raises:
            InvalidManifest: it is not valid, or changes what cannot be changed.
            Forbidden: it violates the pod policy where the stored manifest does not.
        """

    @abstractmethod
    def edit_of(self, row: Row, edited: Any, request: EditRequest[Row]) -> _Edit:
        """What is handed to the database; `edited` is what the request made of the row."""

    @abstractmethod
    async def store(self, row: Row, edit: _Edit) -> Row:
        """Store the edit of this version of the row. Raises PreconditionFailed if there is another version."""

    @abstractmethod
    async def remove(self, row: Row, *, actor: str, at: datetime, reason: str) -> Row:
        """Ask for the removal of the object."""

    @abstractmethod
    def is_carried_out(self, row: Row) -> bool:
        """Whether the cluster is as the manifest says."""

    @abstractmethod
    def is_gone(self, row: Row) -> bool:
        """Whether nothing of a deleted object is left."""

    async def replace(
        self,
        namespace: str,
        name: str,
        document: Manifest,
        *,
        actor: str,
        precondition: Precondition,
        administers: bool = False,
    ) -> Changed[Row]:
        """The whole manifest anew, within what the kind lets be changed."""

        def change(row: Row) -> Any:
            return self.revised(row, _of_same(row, document), administers=administers)

        return await self.edit(
            EditRequest(
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
    ) -> Changed[Row]:
        """RFC 7396 on the stored manifest."""

        def change(row: Row) -> Any:
            document = merge_patch(as_posted(row.manifest), patch)
            return self.revised(row, _of_same(row, document), administers=administers)

        return await self.edit(
            EditRequest(
                namespace=namespace, name=name, change=change, actor=actor, precondition=precondition, document=patch
            )
        )

    async def delete(
        self, namespace: str, name: str, *, actor: str, reason: str = "", precondition: Precondition
    ) -> Changed[Row]:
        """Take all objects of it away, and keep its record and history. Asked again, nothing changes."""
        row = await self.current(namespace, name)
        precondition(row)
        if row.deleted_at is None:
            row = await self.remove(row, actor=actor, at=self._clock.now(), reason=reason)
            self._hint()
        return Changed(row=row, pending=not self.is_gone(row))

    async def current(self, namespace: str, name: str) -> Row:
        """The one that has the name, else the newest that had it. Raises NotFound."""
        row = await resources.find(self._db, self._where, namespace, name)
        if row is None:
            raise NotFound(f"there is no such {self._what}")
        return row

    async def edit(self, request: EditRequest[Row]) -> Changed[Row]:
        """Store what the request makes of the object as it is."""
        for _ in range(_MAX_TRIES):
            row = await self.current(request.namespace, request.name)
            request.precondition(row)
            self.require_editable(row)
            edit = await offloaded_if_large((row.manifest, request.document), self._decide, row, request)
            if edit is None:
                return Changed(row=row, pending=not self.is_carried_out(row))
            try:
                changed = await self.store(row, edit)
            except PreconditionFailed:
                continue
            self._hint()
            return Changed(row=changed, pending=True)
        raise Conflict(f"the {self._what} changes faster than it can be edited: repeat it", code="Contended")

    def _decide(self, row: Row, request: EditRequest[Row]) -> _Edit | None:
        """The edit of the object as it is now; None where it is as asked for."""
        edited = request.change(row)
        return None if edited.manifest == row.manifest else self.edit_of(row, edited, request)


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


def _of_same(row: StoredRow, document: Manifest) -> Manifest:
    """The document of an edit with the name, which it may leave out.

    Raises:
        InvalidManifest: it is that of another object.
    """
    kept = row.manifest
    errors = [
        FieldError(pointer=f"/{field}", code="Immutable", detail="may not be changed", accepted=str(kept[field]))
        for field in ("apiVersion", "kind")
        if document.get(field) != kept[field]
    ]
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if name is not None and name != row.name:
        errors.append(
            FieldError(pointer="/metadata/name", code="Immutable", detail="may not be changed", accepted=row.name)
        )
    if errors:
        raise InvalidManifest("the edit is of another object", code="ImmutableField", errors=errors)
    return {**document, "metadata": {**metadata, "name": row.name}} if isinstance(metadata, dict) else document
