"""Redaction: removes a secret from everything that is stored of an object."""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final, Generic

from typing_extensions import override

from app.base.clock import Clock
from app.base.offload import offload_if_large
from app.db import redaction as stored
from app.db.jobs.rows import JobRow
from app.db.objects.resources import Row
from app.db.postgres.engine import Database
from app.db.redaction import START, Redactable, RedactionCursor, RedactionEntry
from app.db.samples.rows import SampleRow
from app.domain.access.actors import Actor
from app.domain.errors import Conflict, DomainError, PreconditionFailed, Unavailable
from app.domain.manifests.rendered import reserved_names
from app.domain.plan import Manifest
from app.domain.planning import Planner
from app.domain.redaction import Redaction, SecretSelection
from app.services.reading.objects import Address, Reader

# Seconds of one request. It ends after the batch in which they have passed, and the client continues.
_SECONDS: Final = 5.0
_MAX_TRIES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """The number of stored rows that changed, and where to continue, if at all.

    `in_cluster` says whether objects of it may still be in the cluster.
    """

    changed: int
    in_cluster: bool
    rest: RedactionCursor | None


class Redactor(ABC, Generic[Row]):
    """Removes secrets from the objects of one resource, and from what is stored about these objects."""

    def __init__(self, db: Database, redactable: Redactable[Row], reading: Reader[Row], clock: Clock) -> None:
        self._db = db
        self._redactable = redactable
        self._reading = reading
        self._clock = clock

    @abstractmethod
    def require_same(self, row: Row, manifest: Manifest) -> None:
        """Require that the object can be what it is with this manifest.

        Raises:
            Conflict: the object has not ended, or its manifest names something that jobgate must find again.
        """

    async def redact(
        self, row: Row, selection: SecretSelection, actor: Actor, after: RedactionCursor = START
    ) -> Redacted:
        """Remove what is selected from the object, from stored answers and from records about it.

        A repeated request finds nothing to remove, and changes nothing. `after` is where the previous request ended.

        Raises:
            Conflict: as `require_same`. Nothing was changed.
        """
        entry = RedactionEntry(actor=actor, at=self._clock.now(), message=_message(selection))
        row, redaction, changed = await self._redact_row(row, selection, entry)
        if redaction.reaches_records and after == START:
            changed += await stored.remove_logs(self._db, self._redactable, row.uid, entry, is_first=not changed)
        rest: RedactionCursor | None = after if redaction.reaches_records else None
        deadline = self._clock.monotonic() + _SECONDS
        while rest is not None:
            # One entry for each request that changes something.
            rest, more = await stored.batch(
                self._db, self._redactable, row.uid, redaction, rest, None if changed else entry
            )
            changed += more
            if self._clock.monotonic() > deadline:
                break
            await asyncio.sleep(0)
        return Redacted(changed=changed, in_cluster=row.is_in_cluster, rest=rest)

    async def _redact_row(
        self, row: Row, selection: SecretSelection, entry: RedactionEntry
    ) -> tuple[Row, Redaction, int]:
        for _ in range(_MAX_TRIES):
            # If the object changes between the reads, its version is not current, and `store` refuses.
            posted = await self._reading.read_posted(row.uid)
            redaction, kept = await offload_if_large((row.manifest, posted), self._compute, row, posted, selection)
            try:
                return row, redaction, await stored.store(self._db, self._redactable, row, kept, redaction, entry)
            # The controller or a client has changed the object since it was read.
            except PreconditionFailed:
                row = await self._reading.row(Address(uid=row.uid))
        raise Unavailable("the object changes all the time: repeat the request", code="Contended")

    def _compute(
        self, row: Row, posted: Manifest | None, selection: SecretSelection
    ) -> tuple[Redaction, tuple[Manifest, Manifest | None, Any]]:
        redaction = Redaction.of(selection, [row.manifest, posted])
        manifest = redaction.document(row.manifest)
        if manifest != row.manifest:
            self.require_same(row, manifest)
        return redaction, (manifest, redaction.document(posted), manifest["metadata"].get("labels") or {})


class JobRedactor(Redactor[JobRow]):
    """Redacts jobs that have ended. A redacted job keeps its replicas and the names of its objects."""

    def __init__(self, db: Database, reading: Reader[JobRow], planner: Planner, clock: Clock) -> None:
        super().__init__(db, stored.JOBS, reading, clock)
        self._planner = planner

    @override
    def require_same(self, row: JobRow, manifest: Manifest) -> None:
        if not row.has_ended:
            raise _lives(f"the job is {row.status.phase}, and its pods need its manifest", "cancel or delete it first")
        try:
            is_same = self._names(row, manifest) == self._names(row, row.manifest)
        except (DomainError, ValueError):
            is_same = False
        if not is_same:
            raise _not_redactable()

    def _names(self, row: JobRow, manifest: Manifest) -> Any:
        plan = self._planner.plan(self._planner.read(manifest, row.uid, row.generation), str(row.uid))
        return _identity(manifest), sorted(plan.replicas), reserved_names(plan)


class SampleRedactor(Redactor[SampleRow]):
    """Redacts SampleSets and SampleJobs that have ended or are gone. They keep the sample set that they name."""

    def __init__(self, db: Database, reading: Reader[SampleRow], clock: Clock) -> None:
        super().__init__(db, stored.SAMPLES, reading, clock)

    @override
    def require_same(self, row: SampleRow, manifest: Manifest) -> None:
        if not row.is_settled:
            raise _lives(f"the {row.kind} is {row.phase}, and needs its manifest", "delete it first")
        if self._names(row, manifest) != self._names(row, row.manifest):
            raise _not_redactable()

    def _names(self, row: SampleRow, manifest: Manifest) -> Any:
        return _identity(manifest), row.of_kind.set_name(manifest)


def _identity(manifest: Manifest) -> Any:
    metadata = manifest["metadata"]
    return manifest["apiVersion"], manifest["kind"], metadata["namespace"], metadata["name"]


def _lives(why: str, remedy: str) -> Conflict:
    return Conflict(f"{why}: {remedy}. Nothing was removed", code="NotFinished")


def _not_redactable() -> Conflict:
    return Conflict(
        "a name or a word that jobgate needs contains the text: choose a longer text, or name the field. "
        "Nothing was removed",
        code="NotRedactable",
    )


def _message(selection: SecretSelection) -> str:
    """Return the message of the history row, which contains no secret."""
    parts = [
        f"variables: {', '.join(sorted(selection.env))}" if selection.env else "",
        f"fields: {', '.join(selection.fields)}" if selection.fields else "",
        f"texts: {len(selection.texts)}" if selection.texts else "",
    ]
    return f"removed from what is stored: {'; '.join(filter(None, parts))}"
