"""Settings of how long records are kept: docs/keeping.md."""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from app.domain.retention import Keeping, Retention, parse_duration
from app.settings.queues import QueueSettings


def _check_duration(text: str) -> str:
    parse_duration(text)
    return text


def _check_retention(text: str) -> str:
    Retention.parse(text)
    return text


Duration: TypeAlias = Annotated[str, AfterValidator(_check_duration)]
"""A duration with its unit, or never."""
RetentionText: TypeAlias = Annotated[str, AfterValidator(_check_retention)]
"""A duration for all namespaces, then pairs namespace=duration."""


class KeepingSettings(QueueSettings):
    """How long records are kept. Durations have a unit: 90d, 36h, 30m or 45s; never: for ever."""

    keep_jobs: Annotated[
        RetentionText,
        Field(
            description="time after its end for which the record of a job is kept, then exceptions by namespace: "
            "90d,team-a=365d,team-b=never"
        ),
    ] = "90d"
    export_to: Annotated[
        str,
        Field(
            description="folder, or URL of an object store, to which jobs are exported before their records are "
            "deleted; empty: they are not exported"
        ),
    ] = ""
    max_kept_jobs: Annotated[
        int,
        Field(ge=0, description="most jobs of one namespace that are pinned by `jobgate.dev/keep`; 0: no limit"),
    ] = 1000
    keep_logs: Annotated[
        RetentionText,
        Field(
            description="time after its end for which a whole log is kept, then exceptions by namespace as for jobs; "
            "those of pinned jobs stay"
        ),
    ] = "30d"
    keep_samples: Annotated[
        RetentionText,
        Field(
            description="time after its end or removal for which the record of a SampleJob or SampleSet is kept, then "
            "exceptions by namespace as for jobs"
        ),
    ] = "90d"
    keep_purged: Annotated[
        Duration, Field(description="time for which a request with the uid of a purged object is answered 410, not 404")
    ] = "90d"
    keep_feed: Annotated[
        Duration, Field(description="time for which streams can continue after an event; always the last 10 000")
    ] = "1d"
    keep_idempotency_keys: Annotated[
        Duration, Field(description="time for which a repeated request gets the answer to the first one")
    ] = "1d"
    keep_autoscaler_runs: Annotated[
        Duration,
        Field(description="time for which runs of the autoscaler with a change are kept; always the last 500 runs"),
    ] = "7d"

    def keeping(self) -> Keeping:
        return Keeping(
            jobs=Retention.parse(self.keep_jobs),
            logs=Retention.parse(self.keep_logs),
            samples=Retention.parse(self.keep_samples),
            purged=parse_duration(self.keep_purged),
            feed=parse_duration(self.keep_feed),
            idempotency_keys=parse_duration(self.keep_idempotency_keys),
            autoscaler_runs=parse_duration(self.keep_autoscaler_runs),
        )
