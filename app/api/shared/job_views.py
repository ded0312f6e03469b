"""Serves the views of jobs as bytes that are rendered once for each version.

current version (one small statement) ─▶ rendered before? ─▶ the stored bytes
                                         └ no: read the job and render it
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from app.api.answers.conditional import status_tag, whole_tag
from app.api.answers.rendering import job_bytes, status_view
from app.api.answers.responses import json_bytes
from app.base.caches import ENTRY_BYTES, BoundedCache
from app.base.offload import is_large, offload
from app.db.jobs.rows import JobRow, JobSummary
from app.domain.kinds.envelope import is_pinned
from app.services.gateway import Services
from app.services.reading.jobs import RelatedRows
from app.services.reading.objects import Address
from app.services.submitting.jobs import LARGE_JOB

CACHE_BYTES: Final = 64 * 1024 * 1024


class Representation(StrEnum):
    """A view of an object: the whole object, or its status without spec and native status."""

    WHOLE = "whole"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A representation of an object at one version. `render` may be expensive, so `body` is read only if it is sent."""

    namespace: str
    uid: UUID
    version: int
    tag: str
    render: Callable[[], bytes]

    @property
    def body(self) -> bytes:
        return self.render()


class JobViewCache:
    """Reads jobs and keeps their rendered views."""

    def __init__(self, services: Services) -> None:
        self._services = services
        # By representation, uid and version. The bound is in bytes, because jobs differ in size by a factor of 1000.
        self._rendered: BoundedCache[tuple[Representation, UUID, int], Rendered] = BoundedCache(CACHE_BYTES)

    async def read(self, address: Address, representation: Representation) -> Rendered:
        """Return the current representation of the job at the address. Raises NotFound."""
        current = await self._services.reading.version(address)
        cached = self._rendered.get((representation, current.uid, current.version))
        return await self._render(current.uid, representation) if cached is None else cached

    def find(self, row: JobRow) -> Rendered | None:
        """Return the whole view of the row's version if it is cached."""
        return self._rendered.get((Representation.WHOLE, row.uid, row.version))

    async def whole(self, row: JobRow, related: RelatedRows) -> Rendered:
        """Return the whole view of a job from its row and related rows. Large jobs are rendered in another thread."""
        cached = self.find(row)
        if cached is not None:
            return cached
        if len(related.replicas) + len(related.attempts) > LARGE_JOB or is_large(row.manifest):
            body = await offload(self._whole_bytes, row, related)
        else:
            body = self._whole_bytes(row, related)
        return self._keep(Representation.WHOLE, row, whole_tag(row.uid, row.version), body)

    async def whole_of(self, row: JobRow) -> Rendered:
        """Return the whole view of a row that was just read or written. Related rows are read unless it is cached."""
        cached = self.find(row)
        if cached is not None:
            return cached
        return await self.whole(*await self._services.reading.whole(row.uid))

    def _whole_bytes(self, row: JobRow, related: RelatedRows) -> bytes:
        accepted = self._services.planner.read(row.manifest, row.uid, row.generation)
        return job_bytes(accepted, row, related, self._purge_at(row))

    def _purge_at(self, row: JobRow) -> datetime | None:
        """Return when the record of the job expires. None if it does not, or the job has not ended."""
        if row.status.finished_at is None or is_pinned(row.manifest):
            return None
        return self._services.keep_jobs.expires_at(row.namespace, row.imported_at or row.status.finished_at)

    async def _render(self, uid: UUID, representation: Representation) -> Rendered:
        if representation is Representation.STATUS:
            summary = await self._services.reading.summary(uid)
            body = json_bytes(status_view(summary))
            return self._keep(representation, summary, status_tag(summary.uid, summary.version), body)
        return await self.whole(*await self._services.reading.whole(uid))

    def _keep(self, representation: Representation, row: JobSummary, tag: str, body: bytes) -> Rendered:
        rendered = Rendered(row.namespace, row.uid, row.version, tag, lambda: body)
        self._rendered.put((representation, row.uid, row.version), rendered, len(body) + ENTRY_BYTES)
        return rendered
