"""Both kinds as the API serves them: one set of routes is made of each line of the table below."""

from dataclasses import dataclass
from typing import Final, TypeAlias

from pydantic import BaseModel

from app.api.sample_views import (
    SampleJobPage,
    SampleJobStatusView,
    SampleJobView,
    SampleJobWatchEventView,
    SampleSetPage,
    SampleSetStatusView,
    SampleSetView,
    SampleSetWatchEventView,
)
from app.domain.cache.kinds import SAMPLE_JOB, SAMPLE_SET, CacheKind

Model: TypeAlias = type[BaseModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleKind:
    """`word` is its name in those of operations, and of the field of a watch event that has the status."""

    kind: CacheKind
    word: str
    view: Model
    status: Model
    page: Model
    watch: Model

    @property
    def resource(self) -> str:
        return self.kind.resource

    @property
    def event(self) -> str:
        """What its server-sent events are called."""
        return self.kind.kind.lower()

    @property
    def of_all(self) -> str:
        return f"/api/v1/{self.resource}"

    @property
    def collection(self) -> str:
        return f"/api/v1/namespaces/{{namespace}}/{self.resource}"

    @property
    def one(self) -> str:
        return f"{self.collection}/{{name}}"


SAMPLE_KINDS: Final = (
    SampleKind(
        kind=SAMPLE_SET,
        word="sample_set",
        view=SampleSetView,
        status=SampleSetStatusView,
        page=SampleSetPage,
        watch=SampleSetWatchEventView,
    ),
    SampleKind(
        kind=SAMPLE_JOB,
        word="sample_job",
        view=SampleJobView,
        status=SampleJobStatusView,
        page=SampleJobPage,
        watch=SampleJobWatchEventView,
    ),
)
