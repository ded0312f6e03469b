"""Replicas that run although their job has ended, because its clean-up policy keeps them."""

from app.domain.status.records import JobStatus


def shown_message(status: JobStatus) -> str:
    """Return the message of the status, with the number of replicas that still run after the end."""
    count = status.still_running
    if not count:
        return status.message
    runs = "1 replica of this job still runs" if count == 1 else f"{count} replicas of this job still run"
    return f"{status.message}; {runs}" if status.message else runs
