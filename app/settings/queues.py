"""Settings of queues: whether Kueue admits jobs, and whether each job needs a queue."""

from typing import Annotated

from pydantic import Field

from app.loops.controller_settings import QueueMode
from app.settings.leading import LeadingSettings


class QueueSettings(LeadingSettings):
    """Whether jobs wait for their admission by Kueue."""

    queues: Annotated[
        QueueMode,
        Field(description="whether Kueue admits jobs with a queue: auto (if the cluster serves it), on or off"),
    ] = QueueMode.AUTO
    require_queue: Annotated[bool, Field(description="whether a job that names no queue is refused")] = False
