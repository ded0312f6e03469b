"""The ten newest conditions of an MxJob. Upstream declares this list, but its operator never fills it.

The list is derived from the recorded transitions and attempts, so every reader gets the same list. Ready means that the
job has started to run, RemovingDeadMember that a lost or failed pod is replaced, and Recovering that the job waits for
replacements.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from app.domain.kinds.job_kind import StatusFacts
from app.domain.kinds.mx_job.plan import replica_name
from app.domain.kinds.mx_job.spec import MxJobSpec
from app.domain.plan import Rank
from app.domain.vocabulary import JobPhase, Outcome

MAX_CONDITIONS: Final = 10
READY: Final = "Ready"
RECOVERING: Final = "Recovering"
REMOVING: Final = "RemovingDeadMember"

_Event = tuple[datetime, str, str]


def conditions(spec: MxJobSpec, job: str, facts: StatusFacts) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    # The sort is stable. At equal times, the removal of a member comes first, since it is the cause of the recovery.
    for at, kind, reason in sorted([*_removals(spec, job, facts), *_changes(facts)], key=lambda event: event[0]):
        if kind == READY and found and found[-1]["type"] == READY:
            continue
        optional = {"reason": reason} if reason else {}
        found.append({"type": kind, **optional, "transitionTime": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")})
    return found[-MAX_CONDITIONS:]


def _changes(facts: StatusFacts) -> Iterator[_Event]:
    before = None
    for transition in facts.status.transitions:
        # A transition may change only the reason of a phase.
        if transition.phase is not before:
            if transition.phase is JobPhase.RUNNING:
                yield transition.at, READY, ""
            elif transition.phase is JobPhase.RESTARTING:
                yield transition.at, RECOVERING, ""
        before = transition.phase


def _removals(spec: MxJobSpec, job: str, facts: StatusFacts) -> Iterator[_Event]:
    current = {replica.key: replica.attempt.number for replica in facts.replicas}
    for task, rank, attempt in facts.attempts:
        lost = attempt.outcome in (Outcome.FAILED, Outcome.DISRUPTED)
        if lost and attempt.finished_at is not None and attempt.number < current.get(Rank(task, rank), 0):
            name = replica_name(job, task, spec.runtime_id or "", rank)
            yield attempt.finished_at, REMOVING, f"removing dead member {name}"
