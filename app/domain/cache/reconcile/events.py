"""The events of SampleSets and SampleJobs, with upstream's names. Each is recorded once."""

from app.domain.cache.reconcile.values import Complaint, SampleEvent
from app.domain.cache.vocabulary import JobType, SampleEventType, SetPart


def job_word(kind: str) -> str:
    """Return the word for a job type in upstream's events, such as SyncJob."""
    return f"{JobType(kind).value.capitalize()}Job"


def creation_event(part: SetPart) -> SampleEvent:
    return SampleEvent(
        type=SampleEventType.NORMAL, reason=f"Create{part}Successfully", message=f"the {part} has been created"
    )


def success_event(kind: str) -> SampleEvent:
    return SampleEvent(
        type=SampleEventType.NORMAL, reason=f"Do{job_word(kind)}Successfully", message=f"the {kind} job has succeeded"
    )


def failure_event(kind: str, message: str) -> SampleEvent:
    text = message or f"the {kind} job has failed"
    return SampleEvent(type=SampleEventType.WARNING, reason=f"ErrorDo{job_word(kind)}", message=text)


def already_exists(part: SetPart) -> Complaint:
    text = f"another {part} has the name that the set's would have"
    return Complaint(reason=f"Error{part}AlreadyExist", message=text)


def not_created(part: SetPart, message: str) -> Complaint:
    return Complaint(reason=f"ErrorCreate{part}", message=message)


def complaint_events(before: Complaint | None, now: Complaint | None) -> tuple[SampleEvent, ...]:
    """Return the event for a complaint if it differs from the previous one."""
    if now is None or now == before:
        return ()
    return (SampleEvent(type=SampleEventType.WARNING, reason=now.reason, message=now.message),)
