"""Events by upstream's names, each told once."""

from app.domain.cache.reconcile.values import Complaint, SetEvent
from app.domain.cache.sample_job import JobType
from app.domain.cache.vocabulary import EventType, Resource


def job_word(kind: str) -> str:
    """SyncJob, WarmupJob, RmrJob, ClearJob."""
    return f"{JobType(kind).value.capitalize()}Job"


def created(resource: Resource) -> SetEvent:
    return SetEvent(
        type=EventType.NORMAL, reason=f"Create{resource}Successfully", message=f"the {resource} has been created"
    )


def done(kind: str) -> SetEvent:
    return SetEvent(
        type=EventType.NORMAL, reason=f"Do{job_word(kind)}Successfully", message=f"the {kind} job has succeeded"
    )


def failed(kind: str, message: str) -> SetEvent:
    said = message or f"the {kind} job has failed"
    return SetEvent(type=EventType.WARNING, reason=f"ErrorDo{job_word(kind)}", message=said)


def already_exists(resource: Resource) -> Complaint:
    said = f"another {resource} has the name that the set's would have"
    return Complaint(reason=f"Error{resource}AlreadyExist", message=said)


def not_created(resource: Resource, message: str) -> Complaint:
    return Complaint(reason=f"ErrorCreate{resource}", message=message)


def complained(before: Complaint | None, now: Complaint | None) -> tuple[SetEvent, ...]:
    """The event for what stands in the way, when that is news."""
    if now is None or now == before:
        return ()
    return (SetEvent(type=EventType.WARNING, reason=now.reason, message=now.message),)
