"""Renders the Kubernetes objects of a plan as JSON, page by page, so that no request renders a whole job at once."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from app.domain.manifests.gangs import with_gang_apis
from app.domain.manifests.rendered import count_objects, objects_of, sample_objects
from app.domain.plan import JobPlan, Manifest
from app.fairness.share import next_slice

# The size of a page. A single pod may have a megabyte, so a page holds at least a few.
PAGE_BYTES: Final = 4 * 1024 * 1024
SAMPLE: Final = 100  # objects that a dry run shows of a job


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPage:
    """A page of Kubernetes objects as JSON. `more` is True if there are further objects."""

    items: list[bytes]
    more: bool


async def page_of(plan: JobPlan, *, start: int, size: int, task: str | None) -> ManifestPage:
    """Return at most `size` objects from index `start`, within PAGE_BYTES, but at least one if there is one.

    `task` restricts the objects to those of one task.
    """
    # At least one object, or the next page would begin with the same one.
    return await _take(objects_of(plan, start=start, task=task), size, PAGE_BYTES, least=1)


class Sampler:
    """Renders some objects of each job of a dry run, within one limit for the whole answer.

    `gang_apis` are the versions of APIs of PodGroups that the cluster serves; None if they are not known.
    """

    def __init__(self, gang_apis: Collection[str] | None) -> None:
        self._left = PAGE_BYTES
        self._gang_apis = gang_apis

    async def sample(self, plan: JobPlan) -> tuple[list[bytes], int]:
        """Return the objects of the job and of the first replicas of each task, and the number of omitted objects."""
        plan = with_gang_apis(plan, self._gang_apis)
        page = await _take(sample_objects(plan, SAMPLE), count_objects(plan), self._left, least=0)
        self._left -= sum(map(len, page.items))
        return page.items, count_objects(plan) - len(page.items)


async def _take(manifests: Iterable[Manifest], size: int, max_bytes: int, least: int) -> ManifestPage:
    items: list[bytes] = []
    taken = 0
    for manifest in manifests:
        encoded = msgspec.json.encode(manifest)
        if len(items) == size or (len(items) >= least and taken + len(encoded) > max_bytes):
            return ManifestPage(items=items, more=True)
        items.append(encoded)
        taken += len(encoded)
        await next_slice()
    return ManifestPage(items=items, more=False)
