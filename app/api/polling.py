"""The hot reads: a job or its status as stored bytes, 304, and the wait for something new.

version (one small statement) ─▶ cached bytes?  ─▶ 304 or 200
                                 └ no: read and render once a version
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from fastapi import Response

from app.api.conditional import status_tag, unchanged, whole_tag
from app.api.rendering import RenderCache, job_bytes, status_bytes
from app.db.jobs.rows import JobRow
from app.offload import is_large, offloaded
from app.services.freshness import Freshness
from app.services.gateway import Services
from app.services.reading import Address, RelatedRows
from app.services.submitting_jobs import LARGE_JOB

JSON: Final = "application/json"
_MAX_KNOWN: Final = 100_000


class Shown(StrEnum):
    """Which view of an object."""

    WHOLE = "whole"
    STATUS = "status"


@dataclass(frozen=True, slots=True)
class Rendered:
    """A view of an object at one version. `body` calls `render`, which may be expensive: a 304 needs no body."""

    namespace: str
    uid: UUID
    version: int
    tag: str
    render: Callable[[], bytes]

    @property
    def body(self) -> bytes:
        return self.render()


class Poller:
    """Reads for those who ask often."""

    def __init__(self, services: Services, cache: RenderCache[Rendered]) -> None:
        self._services = services
        self._cache = cache
        self._known: OrderedDict[tuple[Shown, Address], None] = OrderedDict()

    async def read(self, address: Address, shown: Shown) -> Rendered:
        """The job as it is now. What was shown before is asked for by version first."""
        place = (shown, address)
        if place in self._known:
            now = await self._services.reading.version(address)
            kept = self._cache.get((shown, now.uid, now.version))
            if kept is not None:
                return kept
        rendered = await self._render(address, shown)
        self._known[place] = None
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return rendered

    async def of_row(self, row: JobRow, related: RelatedRows) -> Rendered:
        """Render the whole job, in another thread if it is large, or take what was rendered."""
        kept = self.kept(row)
        if kept is not None:
            return kept
        if len(related.replicas) + len(related.attempts) > LARGE_JOB or is_large(row.manifest):
            body = await offloaded(job_bytes, self._services.planner, row, related)
        else:
            body = job_bytes(self._services.planner, row, related)
        return self._keep(Shown.WHOLE, row, whole_tag(row.uid, row.version), body)

    def kept(self, row: JobRow) -> Rendered | None:
        return self._cache.get((Shown.WHOLE, row.uid, row.version))

    async def of_job(self, row: JobRow) -> Rendered:
        """The whole job for a row just read or written; its related rows are read unless it was rendered before."""
        kept = self.kept(row)
        if kept is not None:
            return kept
        return await self.of_row(*await self._services.reading.whole(row.uid))

    async def _render(self, address: Address, shown: Shown) -> Rendered:
        if shown is Shown.STATUS:
            row = await self._services.reading.row(address)
            return self._keep(shown, row, status_tag(row.uid, row.version), status_bytes(row))
        uid = address.uid or (await self._services.reading.version(address)).uid
        return await self.of_row(*await self._services.reading.whole(uid))

    def _keep(self, shown: Shown, row: JobRow, tag: str, body: bytes) -> Rendered:
        rendered = Rendered(row.namespace, row.uid, row.version, tag, lambda: body)
        self._cache.put((shown, row.uid, row.version), rendered)
        return rendered


def freshness_headers(freshness: Freshness) -> dict[str, str]:
    headers = {"Jobgate-Stale": "true" if freshness.stale else "false"}
    if freshness.observed_at is not None:
        headers["Jobgate-Observed-At"] = freshness.observed_at.isoformat().replace("+00:00", "Z")
    return headers


def answer(body: bytes, tag: str | None, freshness: Freshness, if_none_match: str | None = None) -> Response:
    """200 with the bytes, or 304 without them; the headers are the same."""
    headers = freshness_headers(freshness) | {"Cache-Control": "private, no-cache", "Vary": "Authorization, Accept"}
    if tag is not None:
        headers["ETag"] = tag
        if unchanged(if_none_match, tag):
            return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=JSON)
