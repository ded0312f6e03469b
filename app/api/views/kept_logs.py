"""The models of the list of kept logs."""

from datetime import datetime

from app.api.views.base import Int32, NextPageToken, View
from app.domain.kept_logs.records import KeptLogState


class KeptLogView(View):
    """What is kept of the log of one run of a container."""

    task: str
    rank: Int32
    attempt: Int32
    container: str
    """Name of the container."""
    run: Int32
    """How often the kubelet had restarted the container in place before this run."""
    state: KeptLogState
    """Whether more is expected (`following`), all of it is kept (`complete`), or the rest is not kept (`cut`)."""
    bytes: int
    """How many bytes of the log are kept."""
    lines: int
    """How many lines of the log are kept."""
    first_at: datetime | None
    """The time of the first line; null without one."""
    last_at: datetime | None
    """The time of the last line; null without one."""
    gaps: Int32
    """How many parts of the log are missing within it."""
    note: str | None
    """Why the log is cut; null otherwise."""


class KeptLogPage(View):
    """A page of kept logs, ordered by task, rank, attempt, container and run."""

    items: list[KeptLogView]
    next_page_token: NextPageToken
