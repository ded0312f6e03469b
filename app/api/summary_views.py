"""The models of lists with `view=summary`, and the field that distinguishes them from lists of whole objects."""

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from app.api.closed_sets import JobKind
from app.api.views import CommonStatusView, NextPageToken, StatusView, View

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
    deleted_at: datetime | None
    """When its deletion was requested, else null."""
    status: CommonStatusView


class JobSummaryView(ResourceSummaryView):
    """What a table of jobs shows: a job without its manifest, conditions and native status."""

    kind: JobKind
    status: StatusView


class JobSummaryPage(View):
    """A page of the summaries of jobs, newest first."""

    items: list[JobSummaryView]
    next_page_token: NextPageToken
    view: Literal["summary"]
