"""The conditions of SampleSets and SampleJobs, in the words that jobs have for the same."""

from collections.abc import Mapping
from typing import TypeAlias

from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.cache.vocabulary import SampleJobPhase, SetPhase
from app.domain.vocabulary import ConditionType

Wanted: TypeAlias = Mapping[ConditionType, tuple[bool, str, str]]


def set_conditions(record: SetRecord) -> Wanted:
    """Ready: all servers run and serve the data. Synced: the data of the source is in the volume."""
    if record.phase is SetPhase.NONE:
        return {}
    blocked = (record.complaint.reason, record.complaint.message) if record.complaint else (str(record.phase), "")
    is_ready = record.phase is SetPhase.READY
    wanted = {ConditionType.READY: (is_ready, *(("Ready", "") if is_ready else blocked))}
    if record.synced:
        wanted[ConditionType.SYNCED] = (True, "Synced", "")
    elif record.phase in (SetPhase.SYNCING, SetPhase.SYNC_FAILED):
        wanted[ConditionType.SYNCED] = (False, *blocked)
    return wanted


def job_conditions(record: JobRecord) -> Wanted:
    """Running, and once it has ended Completed and Failed, as of every job."""
    phase, message = record.phase, record.complaint.message if record.complaint else record.message
    if phase is SampleJobPhase.NONE:
        return {}
    wanted = {ConditionType.RUNNING: (phase is SampleJobPhase.RUNNING, str(phase), message)}
    if phase in (SampleJobPhase.SUCCEEDED, SampleJobPhase.FAILED):
        wanted[ConditionType.COMPLETED] = (phase is SampleJobPhase.SUCCEEDED, str(phase), message)
        wanted[ConditionType.FAILED] = (phase is SampleJobPhase.FAILED, str(phase), message)
    return wanted
