"""SampleSets and SampleJobs for those who may see and change them. Answers nothing before it is durable."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar
from uuid import UUID

import msgspec

from app.clock import Clock
from app.db import sample_controller, samples
from app.db.engine import Database
from app.db.queries import Cursor
from app.db.sample_controller import MountingJob
from app.db.sample_rows import SampleEventRow, SampleHistoryRow, SampleRow
from app.db.samples import NewSample, SampleAnswer, SampleEdit, SampleFilter, SamplePage, SampleTaken, SampleVersion
from app.db.submit import KeyConflict, KeyInFlight, Replayed, Submitted
from app.domain.cache.kinds import CacheKind
from app.domain.cache.specs.limits import CacheLimits
from app.domain.dialects.changes import is_respecified
from app.domain.errors import Conflict, FieldError, NotFound, PreconditionFailed
from app.domain.generated_names import SUFFIX_ALPHABET, SUFFIX_LENGTH
from app.domain.plan import Manifest
from app.offload import offloaded_if_large
from app.services.control import merge_patch
from app.services.sample_drafts import SampleDraft, drafted, redrafted
from app.services.submitting import (
    NAME_DRAWS,
    Created,
    Hint,
    RequestKey,
    decided,
    kept_answer,
    key_in_flight,
    key_reused,
)

SampleRender: TypeAlias = Callable[[SampleRow], bytes]
# Raises PreconditionFailed when it is not the version that the caller decided on.
SamplePrecondition: TypeAlias = Callable[[SampleRow], None]

_T = TypeVar("_T")
# Without a precondition an edit that met another is decided again on what that one left.
_MAX_TRIES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleChanged:
    """It afterwards; `pending` says that the cluster has yet to carry it out."""

    row: SampleRow
    pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """An edit: the document that the caller sent, and the manifest that it makes of the stored one."""

    document: Manifest
    change: Callable[[Manifest], Manifest]


class Samples:
    """One transaction each. The controller learns of a change by the intent that is left in the row."""

    def __init__(self, db: Database, clock: Clock, hint: Hint, limits: CacheLimits, randomness: random.Random) -> None:
        self._db = db
        self._clock = clock
        self._hint = hint
        self._limits = limits
        self._random = randomness

    async def prepare(self, kind: CacheKind, document: Manifest, namespace: str) -> SampleDraft:
        """All that can be said of a document without the database.

        Raises:
            InvalidManifest: with every error there is.
        """
        return await offloaded_if_large(document, drafted, kind, document, namespace, self._limits, self._suffix)

    async def submit(
        self,
        kind: CacheKind,
        document: Manifest,
        namespace: str,
        *,
        actor: str,
        key: RequestKey | None,
        render: SampleRender,
    ) -> Created:
        """Store it and answer with what `render` makes of it, or with what an earlier request was answered.

        Raises:
            InvalidManifest, NotStorable: nothing was stored.
            Conflict: the name is in use (NameTaken, BeingDeleted), or the key is.
        """
        for draws_left in range(NAME_DRAWS - 1, -1, -1):
            draft = await self.prepare(kind, document, namespace)
            new = self._new(draft, namespace, actor)
            body = await offloaded_if_large(new.manifest, render, samples.first_row(new))
            keyed = None if key is None else kept_answer(key, body)
            answer = await decided(self._clock, partial(samples.insert, self._db, new, keyed), _is_in_flight)
            if isinstance(answer, SampleTaken) and draft.generated and draws_left:
                continue
            return self._answered(answer, new, body)
        raise AssertionError("the last draw is answered")

    async def replace(
        self, kind: CacheKind, namespace: str, name: str, document: Manifest, *, actor: str,
        precondition: SamplePrecondition,
    ) -> SampleChanged:  # fmt: skip
        """The whole manifest anew, within what can be changed of it.

        Raises:
            InvalidManifest: it is not valid, or changes what cannot be changed.
            Conflict: it is being deleted (BeingDeleted), has been (Deleted), or has succeeded (AlreadyFinished).
        """
        asked = _Asked(document=document, change=lambda _: document)
        return await self._edit(kind, namespace, name, asked, actor, precondition)

    async def merge(
        self, kind: CacheKind, namespace: str, name: str, patch: dict[str, Any], *, actor: str,
        precondition: SamplePrecondition,
    ) -> SampleChanged:  # fmt: skip
        """RFC 7396 on the stored manifest; raises what `replace` does."""

        def merged(stored: Manifest) -> Manifest:
            document: Manifest = merge_patch(stored, patch)
            return document

        asked = _Asked(document=patch, change=merged)
        return await self._edit(kind, namespace, name, asked, actor, precondition)

    async def delete(
        self, kind: CacheKind, namespace: str, name: str, *, actor: str, reason: str = "",
        precondition: SamplePrecondition,
    ) -> SampleChanged:  # fmt: skip
        """Have all of it taken away; its history stays. Asked again, nothing changes."""
        row = await self.row(kind, namespace, name)
        precondition(row)
        if row.delete_requested_at is None:
            now = self._clock.now()
            row = await samples.request_deletion(self._db, row.uid, actor=actor, at=now, reason=reason)
            self._hint()
        return SampleChanged(row=row, pending=row.gone_at is None)

    async def row(self, kind: CacheKind, namespace: str, name: str) -> SampleRow:
        """The one that has the name, else the newest that had it.

        Raises:
            NotFound: there never was one.
        """
        return _present(await samples.find(self._db, kind.kind, namespace, name), kind)

    async def version(self, kind: CacheKind, namespace: str, name: str) -> SampleVersion:
        """Which version of which one it is now: one small statement. Raises what `row` does."""
        return _present(await samples.find_version(self._db, kind.kind, namespace, name), kind)

    async def page(self, where: SampleFilter, after: Cursor | None, limit: int) -> SamplePage:
        return await samples.page(self._db, where, after=after, limit=limit)

    async def history(self, uid: UUID, after: int, limit: int) -> list[SampleHistoryRow]:
        return await samples.history(self._db, uid, after_seq=after, limit=limit)

    async def events(self, uid: UUID, after: int, limit: int) -> list[SampleEventRow]:
        return await samples.events(self._db, uid, after_seq=after, limit=limit)

    async def mounting_jobs(self, namespace: str, set_name: str) -> list[MountingJob]:
        """The live jobs that mount the set's claim, which has its name."""
        return await sample_controller.jobs_mounting(self._db, namespace, set_name)

    def _suffix(self) -> str:
        return "".join(self._random.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))

    def _new(self, draft: SampleDraft, namespace: str, actor: str) -> NewSample:
        return NewSample(
            uid=UUID(int=self._random.getrandbits(128), version=4),
            kind=draft.kind.kind,
            namespace=namespace,
            name=draft.name,
            api_version=draft.manifest["apiVersion"],
            manifest=draft.manifest,
            set_name=draft.set_name,
            labels=draft.labels,
            created_at=self._clock.now(),
            created_by=actor,
        )

    def _answered(self, answer: SampleAnswer, new: NewSample, body: bytes) -> Created:
        match answer:
            case Submitted():
                self._hint()
                return Created(uid=new.uid, name=new.name, version=1, body=body, replayed=False)
            case Replayed(uid=uid, answer=first):
                name = msgspec.json.decode(first)["name"]
                return Created(uid=uid, name=name, version=1, body=first, replayed=True)
            case SampleTaken(row=row):
                raise _name_in_use(row)
            case KeyConflict():
                raise key_reused()
            case KeyInFlight():
                raise key_in_flight()

    async def _edit(
        self,
        kind: CacheKind,
        namespace: str,
        name: str,
        asked: _Asked,
        actor: str,
        precondition: SamplePrecondition,
    ) -> SampleChanged:
        for _ in range(_MAX_TRIES):
            row = await self.row(kind, namespace, name)
            precondition(row)
            samples.refuse_leaving(row)
            draft = await offloaded_if_large((row.manifest, asked.document), self._redrafted, row, asked)
            if draft.manifest == row.manifest:
                return SampleChanged(row=row, pending=row.observed_generation < row.generation)
            try:
                changed = await samples.edit(self._db, row.uid, self._edit_of(row, draft, actor))
            except PreconditionFailed:
                continue
            self._hint()
            return SampleChanged(row=changed, pending=True)
        raise Conflict(f"the {kind.kind} changes faster than it can be edited: repeat it", code="Contended")

    def _redrafted(self, row: SampleRow, asked: _Asked) -> SampleDraft:
        return redrafted(row, asked.change(row.manifest), self._limits)

    def _edit_of(self, row: SampleRow, draft: SampleDraft, actor: str) -> SampleEdit:
        return SampleEdit(
            manifest=draft.manifest,
            labels=draft.labels,
            set_name=draft.set_name,
            actor=actor,
            at=self._clock.now(),
            is_respecified=is_respecified(row.manifest, draft.manifest),
            expected_version=row.version,
        )


def _is_in_flight(answer: SampleAnswer) -> bool:
    return isinstance(answer, KeyInFlight)


def _name_in_use(row: SampleRow) -> Conflict:
    if row.delete_requested_at is None:
        code, detail = "NameTaken", f"the {row.kind} {row.name} ({row.uid}) has this name"
        accepted = "another name, or delete that one"
    else:
        code, detail = "BeingDeleted", f"the {row.kind} {row.name} ({row.uid}) of this name is being deleted"
        accepted = "another name, or wait until nothing of that one is left"
    error = FieldError(pointer="/metadata/name", code=code, detail=detail, accepted=accepted)
    return Conflict("the name is in use", code=code, errors=[error])


def _present(found: _T | None, kind: CacheKind) -> _T:
    if found is None:
        raise NotFound(f"there is no such {kind.kind}")
    return found
