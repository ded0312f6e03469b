"""The ring of the job's ten newest conditions, which upstream declares and its operator never appends to.

Made from what is recorded of the job's changes of phase and of its former attempts, so that it is the same at every
look: Ready when the job comes to run, RemovingDeadMember for a pod that was lost or failed and is replaced, Recovering
when the job waits for replacements.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from app.domain.dialects.base import StatusFacts
from app.domain.dialects.mx_job.plan import replica_name
from app.domain.dialects.mx_job.spec import MxJobSpec
from app.domain.plan import Rank
from app.domain.vocabulary import JobPhase, Outcome

RING: Final = 10
READY: Final = "Ready"
RECOVERING: Final = "Recovering"
REMOVING: Final = "RemovingDeadMember"

_Event = tuple[datetime, str, str]


def conditions(spec: MxJobSpec, job: str, facts: StatusFacts) -> list[dict[str, Any]]:
    ring: list[dict[str, Any]] = []
    # Of one moment, the dead member comes first: it is why the job recovers.
    for at, kind, reason in sorted([*_removals(spec, job, facts), *_changes(facts)], key=lambda event: event[0]):
        if kind == READY and ring and ring[-1]["type"] == READY:
            continue
        told = {"reason": reason} if reason else {}
        ring.append({"type": kind, **told, "transitionTime": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")})
    return ring[-RING:]


def _changes(facts: StatusFacts) -> Iterator[_Event]:
    before = None
    for transition in facts.status.transitions:
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
