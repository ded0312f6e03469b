"""The differences between a cluster and a database that was restored from a backup, or bound to another cluster.

    anchor   record                              difference
    yes      none                                Lost
    none     none, but pods or Workloads exist   Orphaned
    ended    live                                Ended
    live     live, with earlier attempts         Ahead
    none     live, objects were created          Missing
    none     live, no object was created         Unstarted

All else is the work of the controller: it brings the cluster to the record, as after any outage.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from app.domain.access.namespaces import is_former
from app.domain.errors import Conflict
from app.domain.plan import Rank
from app.domain.vocabulary import TERMINAL_PHASES, JobPhase


class Difference(StrEnum):
    """How the cluster and the record of a job differ."""

    LOST = "Lost"  # the database does not know the job of an anchor
    ORPHANED = "Orphaned"  # neither an anchor nor the database knows the job of a pod or Workload
    ENDED = "Ended"  # the anchor has a terminal phase, and the job is recorded as live
    AHEAD = "Ahead"  # pods of later attempts than the recorded ones
    MISSING = "Missing"  # objects of a live job are recorded, and the cluster has no anchor of it
    UNSTARTED = "Unstarted"  # a live job without anchor and without recorded objects


class Remedy(StrEnum):
    """What `jobgate recover --yes` does about a difference."""

    RELEASE = "release"
    DELETE = "delete"
    END = "end"
    ADOPT = "adopt"
    REQUEUE = "requeue"
    FAIL = "fail"
    START = "start"  # the controller creates the objects


# The controller does what the last two need: its janitor deletes orphans, and it starts jobs.
_FIXED: Final = {
    Difference.ENDED: Remedy.END,
    Difference.AHEAD: Remedy.ADOPT,
    Difference.ORPHANED: Remedy.DELETE,
    Difference.UNSTARTED: Remedy.START,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The remedies that an operator chooses: for jobs that the database does not know, and for live jobs without
    objects. None is no choice.
    """

    unknown: Remedy | None = None
    live: Remedy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPod:
    key: Rank
    attempt: int
    name: str


@dataclass(slots=True, kw_only=True)
class ClusterJob:
    """The objects of a job in the cluster. `anchor` is the uid of its anchor, or None; `ended` its terminal phase.

    The anchor owns the pods and `workloads` (names). Without one, they name an anchor that is gone.
    """

    uid: str
    namespace: str
    name: str
    kind: str
    anchor: str | None = None
    ended: JobPhase | None = None
    pods: list[ClusterPod] = field(default_factory=list)
    workloads: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownReplica:
    """A replica as it is recorded. `pod_name` is None if the record does not have it."""

    attempt: int
    pod_name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownJob:
    """What a comparison needs of a recorded job. `anchors` are the recorded uids of its anchor."""

    uid: str
    namespace: str
    name: str
    kind: str
    phase: JobPhase
    anchors: Sequence[str] = ()
    replicas: Mapping[Rank, KnownReplica] = field(default_factory=dict)
    had_pods: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFinding:
    """One job that differs. `recorded` is its phase in the database, `ended` the terminal phase of its anchor.

    `pods` and `workloads` are names. `attempts` are the attempts of the cluster that are later than the recorded ones.
    """

    difference: Difference
    uid: str
    namespace: str
    name: str
    kind: str
    recorded: JobPhase | None = None
    ended: JobPhase | None = None
    pods: Sequence[str] = ()
    workloads: Sequence[str] = ()
    attempts: Mapping[Rank, int] = field(default_factory=dict)


class NoRemedy(Conflict):
    """The operator must choose a remedy first."""


def with_remedies(findings: Iterable[JobFinding], choices: Choices) -> list[tuple[JobFinding, Remedy]]:
    """Return each finding with its remedy.

    Raises:
        NoRemedy: the operator must choose one.
    """
    chosen: list[tuple[JobFinding, Remedy]] = []
    for finding in findings:
        found = remedy(finding.difference, choices)
        if found is None:
            option = "--unknown=release|delete" if finding.difference is Difference.LOST else "--live=requeue|fail"
            what = f"{finding.namespace}/{finding.name} ({finding.uid}) is {finding.difference}"
            raise NoRemedy(f"{what}: choose what happens to such jobs with {option}")
        chosen.append((finding, found))
    return chosen


def remedy(difference: Difference, choices: Choices) -> Remedy | None:
    """Return the remedy, or None if the operator must choose one."""
    if difference is Difference.LOST:
        return choices.unknown
    if difference is Difference.MISSING:
        return choices.live
    return _FIXED[difference]


def terminal_phase(text: str | None) -> JobPhase | None:
    """Return the phase that an anchor is marked with; None if it is not marked or the value is not valid."""
    return JobPhase(text) if text in TERMINAL_PHASES else None


def compare(found: ClusterJob | None, known: KnownJob | None) -> JobFinding | None:
    """Compare one job, whose objects are in the namespace of the record."""
    if known is None:
        return None if found is None else _unknown(found)
    if known.phase.is_terminal or is_former(known.namespace):
        return None
    if found is None or found.anchor is None:
        created = bool(known.anchors) or known.had_pods
        return _of(known, Difference.MISSING if created else Difference.UNSTARTED)
    # Another client may have made an anchor of this name: the record says which one is the job's.
    if known.anchors and found.anchor not in known.anchors:
        return None
    attempts = _later_attempts(found, known)
    if found.ended is not None:
        return _of(known, Difference.ENDED, found, attempts)
    return _of(known, Difference.AHEAD, found, attempts) if attempts else None


def _unknown(found: ClusterJob) -> JobFinding:
    return JobFinding(
        difference=Difference.ORPHANED if found.anchor is None else Difference.LOST,
        uid=found.uid,
        namespace=found.namespace,
        name=found.name,
        kind=found.kind,
        ended=found.ended,
        pods=_pod_names(found),
        workloads=tuple(found.workloads),
    )


def _pod_names(found: ClusterJob) -> tuple[str, ...]:
    return tuple(pod.name for pod in found.pods)


def _of(
    known: KnownJob,
    difference: Difference,
    found: ClusterJob | None = None,
    attempts: Mapping[Rank, int] | None = None,
) -> JobFinding:
    return JobFinding(
        difference=difference,
        uid=known.uid,
        namespace=known.namespace,
        name=known.name,
        kind=known.kind,
        recorded=known.phase,
        ended=found.ended if found is not None else None,
        pods=_pod_names(found) if found is not None else (),
        attempts=attempts or {},
    )


def _later_attempts(found: ClusterJob, known: KnownJob) -> dict[Rank, int]:
    """Return the latest attempt of each recorded replica of which the cluster has a later one."""
    later: dict[Rank, int] = {}
    for pod in found.pods:
        replica = known.replicas.get(pod.key)
        if replica is None or replica.pod_name not in (None, pod.name):
            continue
        if pod.attempt > later.get(pod.key, replica.attempt):
            later[pod.key] = pod.attempt
    return later
