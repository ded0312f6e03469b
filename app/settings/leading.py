"""Settings of the lease of the controller, and of its contact with the cluster."""

from typing import Annotated

from pydantic import Field

from app.settings.policy import PolicySettings


class LeadingSettings(PolicySettings):
    """The settings of the active controller. Times are in seconds."""

    lease_seconds: Annotated[
        float, Field(gt=0, description="time after which an unrenewed lease expires, as in Kubernetes' leader election")
    ] = 15.0
    request_timeout: Annotated[
        float,
        Field(gt=0, description="longest time of one call to the cluster by the controller; at most half of the lease"),
    ] = 5.0
    lease_grace: Annotated[
        float,
        Field(gt=0, description="time in which work must end after its lease has expired; then the process exits"),
    ] = 10.0
    stale_after: Annotated[
        float,
        Field(
            gt=0,
            description="time without contact to the cluster after which status is stale; six probes are sent in it",
        ),
    ] = 30.0
    lease_without_contact: Annotated[
        float | None,
        Field(
            gt=0,
            description="time without contact to the cluster after which a controller gives its lease to a process "
            "with contact; by default twice JOBGATE_STALE_AFTER",
        ),
    ] = None

    def contact_limit(self) -> float:
        """Return how long a controller keeps its lease without contact while another process has contact."""
        return self.lease_without_contact or 2 * self.stale_after
