"""Events by upstream's names, each told once."""

from app.domain.cache.reconcile.values import Complaint, SampleEvent
from app.domain.cache.vocabulary import JobType, SampleEventType, SetPart


def job_word(kind: str) -> str:
    """SyncJob, WarmupJob, RmrJob, ClearJob."""
    return f"{JobType(kind).value.capitalize()}Job"


def created(part: SetPart) -> SampleEvent:
    return SampleEvent(
        type=SampleEventType.NORMAL, reason=f"Create{part}Successfully", message=f"the {part} has been created"
    )


def done(kind: str) -> SampleEvent:
    return SampleEvent(
        type=SampleEventType.NORMAL, reason=f"Do{job_word(kind)}Successfully", message=f"the {kind} job has succeeded"
    )


def failed(kind: str, message: str) -> SampleEvent:
    said = message or f"the {kind} job has failed"
    return SampleEvent(type=SampleEventType.WARNING, reason=f"ErrorDo{job_word(kind)}", message=said)


def already_exists(part: SetPart) -> Complaint:
    said = f"another {part} has the name that the set's would have"
    return Complaint(reason=f"Error{part}AlreadyExist", message=said)


def not_created(part: SetPart, message: str) -> Complaint:
    return Complaint(reason=f"ErrorCreate{part}", message=message)


def complained(before: Complaint | None, now: Complaint | None) -> tuple[SampleEvent, ...]:
    """The event for what stands in the way, when that is news."""
    if now is None or now == before:
        return ()
    return (SampleEvent(type=SampleEventType.WARNING, reason=now.reason, message=now.message),)
