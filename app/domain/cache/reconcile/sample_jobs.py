"""The reconcile of a SampleJob."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from app.domain.cache.reconcile.events import complaint_events, failure_event, job_word, success_event
from app.domain.cache.reconcile.progress import overall
from app.domain.cache.reconcile.values import (
    CacheAction,
    Complaint,
    JobDecision,
    JobInputs,
    JobRecord,
    PostOptions,
    ServerAnswer,
    Terminate,
)
from app.domain.cache.vocabulary import JobType, SampleJobPhase, ServerJobState

_PAUSE: Final = 10.0  # seconds
# These change the volume, which all servers share. Server 0 does them alone.
_BY_ONE: Final = frozenset({JobType.SYNC, JobType.RMR})


def reconcile_job(inputs: JobInputs) -> JobDecision:
    """Reconcile a SampleJob according to its phase."""
    match inputs.record.phase:
        case SampleJobPhase.NONE:
            return _start(inputs)
        case SampleJobPhase.FAILED:
            return _retry_if_changed(inputs)
        case SampleJobPhase.SUCCEEDED:
            return JobDecision(record=inputs.record)
    return _follow(inputs)


def _start(inputs: JobInputs) -> JobDecision:
    observed = inputs.observed
    if not observed.set_uid or observed.is_leaving:
        state = "is being deleted" if observed.set_uid else "is not exist"
        complaint = Complaint(reason="ErrorSampleSetNotExist", message=f"SampleSet {_set_name(inputs)} {state}")
        return _stay(inputs, complaint)
    if observed.refusal is not None:
        return _stay(inputs, observed.refusal)
    servers = _servers(inputs)
    if not servers or not observed.digest:
        reason = "no runtime server of the set is running" if not servers else "the options are not known yet"
        return _stay(inputs, Complaint(reason=f"ErrorCreate{job_word(inputs.spec.type)}", message=reason))
    record = JobRecord(
        phase=SampleJobPhase.PENDING,
        job=inputs.fresh_name,
        digest=observed.digest,
        servers=servers,
        set_uid=observed.set_uid,
    )
    answers = [ServerAnswer(index=index, status=ServerJobState.NOT_POSTED) for index in servers]
    return JobDecision(record=record, actions=_posting(inputs, record, answers), wake_after=_PAUSE, refreshes_set=True)


def _servers(inputs: JobInputs) -> tuple[int, ...]:
    """Return the servers that a new job is posted to; empty if they do not run."""
    running = tuple(sorted(inputs.observed.running))
    if JobType(inputs.spec.type) in _BY_ONE:
        return running[:1] if running[:1] == (0,) else ()
    return running


def _posting(inputs: JobInputs, record: JobRecord, answers: Sequence[ServerAnswer]) -> tuple[CacheAction, ...]:
    """Return the actions that post the job to the servers that do not have it.

    With `terminate`, other jobs are ended first. This is safe only while no server has this job, which it would end as
    well. So all servers must answer before.
    """
    missing = tuple(answer.index for answer in answers if answer.status is ServerJobState.NOT_POSTED)
    post = (PostOptions(job=record.job, servers=missing),) if missing else ()
    is_posted = any(answer.status not in (ServerJobState.NOT_POSTED, ServerJobState.UNKNOWN) for answer in answers)
    if not inputs.spec.terminate or is_posted:
        return post
    return (Terminate(), *post) if len(missing) == len(answers) else ()


def _follow(inputs: JobInputs) -> JobDecision:
    record = inputs.record
    # A later set of the same name has other data; the job must never reach it.
    if inputs.observed.set_uid != record.set_uid:
        return _fail(inputs, f"the SampleSet {_set_name(inputs)} that the job was posted to is gone", pause=None)
    answers = _current_answers(inputs)
    record = replace(record, progress=overall([answer.progress for answer in answers]))
    inputs = replace(inputs, record=record)
    if not answers:
        return _fail(inputs, "the set has given up the servers that had the job")
    # A failure on any server ends the job, even while others still work on it. Upstream reads the servers in order, so
    # a running server 0 hides the failure of server 1.
    failure = next((answer for answer in answers if answer.status is ServerJobState.FAIL), None)
    if failure is not None:
        return _fail(inputs, failure.message)
    if all(answer.status is ServerJobState.SUCCESS for answer in answers):
        record = replace(record, phase=SampleJobPhase.SUCCEEDED, complaint=None)
        return JobDecision(record=record, events=(success_event(inputs.spec.type),), refreshes_set=True)
    begun = record.phase is SampleJobPhase.RUNNING or any(
        answer.status in (ServerJobState.RUNNING, ServerJobState.SUCCESS) for answer in answers
    )
    record = replace(record, phase=SampleJobPhase.RUNNING if begun else SampleJobPhase.PENDING)
    return JobDecision(record=record, actions=_posting(inputs, record, answers), wake_after=_PAUSE)


def _current_answers(inputs: JobInputs) -> list[ServerAnswer]:
    """Return the answer of each server that the job was posted to, without those that were scaled down since."""
    answers = {answer.index: answer for answer in inputs.observed.answers}
    replicas = inputs.observed.replicas
    # A set has at least one partition. With 0 replicas another client has scaled it down, and server 0 will return.
    kept = [index for index in inputs.record.servers if replicas is None or index < max(replicas, 1)]
    return [answers.get(index, ServerAnswer(index=index, status=ServerJobState.UNKNOWN)) for index in kept]


def _fail(inputs: JobInputs, message: str, pause: float | None = _PAUSE) -> JobDecision:
    record = replace(inputs.record, phase=SampleJobPhase.FAILED, message=message, complaint=None)
    event = failure_event(inputs.spec.type, message)
    return JobDecision(record=record, events=(event,), wake_after=pause, refreshes_set=True)


def _retry_if_changed(inputs: JobInputs) -> JobDecision:
    """Start again if the options differ from those that failed. The set must be the one that the job was posted to."""
    observed = inputs.observed
    if observed.set_uid != inputs.record.set_uid:
        return _stay(inputs, None, pause=None)
    if observed.digest and observed.digest != inputs.record.digest:
        # An empty record is a new job, with a new name for its option files.
        return JobDecision(record=JobRecord(), wake_after=0.0)
    return _stay(inputs, observed.refusal)


def _set_name(inputs: JobInputs) -> str:
    return inputs.spec.sample_set_ref.name if inputs.spec.sample_set_ref else ""


def _stay(inputs: JobInputs, complaint: Complaint | None, pause: float | None = _PAUSE) -> JobDecision:
    return JobDecision(
        record=replace(inputs.record, complaint=complaint),
        events=complaint_events(inputs.record.complaint, complaint),
        wake_after=pause,
    )
