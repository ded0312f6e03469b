"""The models of summaries of lists: items with `view=summary`, and numbers of objects."""

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from app.api.views.base import NextPageToken, View
from app.api.views.closed_sets import JobKindName
from app.api.views.objects import CommonStatusView, StatusView
from app.domain.vocabulary import JobPhase

# The values of the query parameter `view` of lists, and of the field of the same name in their answers.
ListView: TypeAlias = Literal["full", "summary"]


class ResourceSummaryView(View):
    """What a table of objects shows: an object without its manifest, conditions and native status."""

    uid: UUID
    namespace: str
    name: str
    kind: str
    generation: int
    """Increases with every edit of the spec, not with edits of labels and annotations."""
    created_at: datetime
    created_by: str
    created_by_id: str | None
    deleted_at: datetime | None
    """When its deletion was requested, else null."""
    labels: dict[str, str]
    status: CommonStatusView


class JobSummaryView(ResourceSummaryView):
    """What a table of jobs shows: a job without its manifest, conditions and native status."""

    kind: JobKindName
    imported_at: datetime | None
    """When the job was imported from an export, else null."""
    status: StatusView


class JobSummaryPage(View):
    """A page of the summaries of jobs, newest first."""

    items: list[JobSummaryView]
    next_page_token: NextPageToken
    view: Literal["summary"]


class PhaseCountView(View):
    """The number of objects in a phase."""

    phase: str
    count: int
    """The number of objects."""
    is_complete: bool
    """Whether `count` is exact; otherwise it is a lower bound."""


class KindCountView(View):
    """The number of objects of a kind."""

    kind: str
    count: int
    """The number of objects."""
    is_complete: bool
    """Whether `count` is exact; otherwise it is a lower bound."""


class CountsView(View):
    """The numbers of objects by phase and by kind."""

    phases: list[PhaseCountView]
    kinds: list[KindCountView]


class JobPhaseCountView(PhaseCountView):
    """The number of jobs in a phase."""

    phase: JobPhase


class JobKindCountView(KindCountView):
    """The number of jobs of a kind."""

    kind: JobKindName


class JobCountsView(View):
    """The numbers of jobs by phase and by kind."""

    phases: list[JobPhaseCountView]
    kinds: list[JobKindCountView]
