"""What is stored of the queue of a job: its Workloads, and the admission of each task."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from uuid import UUID

from app.domain.kubernetes.topology import TopologyAssignment, keep_places
from app.domain.plan import Manifest, Rank

# How the message of an eviction names the preemptor: by the label `kueue.x-k8s.io/job-uid` of its Workload.
_PREEMPTOR: Final = re.compile(r"JobUID: ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetAdmission:
    """What the pods of a pod set get by their admission, from its flavors, its topology and admission checks."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_labels: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Manifest, ...] = ()
    topology: TopologyAssignment | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAdmission:
    """The admission of a task: that of its pod set, and the ranks that it covers, from `from_rank` to `size` - 1.

    `first` is the place of its first pod in the pod set. Replicas with the ranks `ended` have no place in it.
    """

    pod_set: str
    size: int
    pods: PodSetAdmission
    first: int = 0
    ended: tuple[int, ...] = ()
    from_rank: int = 0

    def covers(self, rank: int) -> bool:
        return self.from_rank <= rank < self.size

    def domain_of(self, rank: int) -> Mapping[str, str]:
        """Return the node labels of the topology domain that Kueue has assigned to a rank; none without a topology."""
        place = self.first + rank - self.from_rank - bisect_left(self.ended, rank)
        return self.pods.topology.domain_of(place) if self.pods.topology is not None else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedWorkload:
    """What is stored of one Workload of a job: the replicas that it is for, by task, and whether it is admitted.

    `number` is 0 for the first Workload of a job, and greater for one that a scale-up has added. `reclaimed` counts the
    pods of each pod set whose quota is given back. `evicted` is Kueue's reason for an eviction since the last admission
    of a further Workload; that of the first one is `Queueing.evicted`.
    """

    number: int
    tasks: Mapping[str, TaskAdmission]
    admitted: bool = False
    reclaimed: Mapping[str, int] = field(default_factory=dict)
    evicted: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the job has none of its replicas any more."""
        return not any(task.from_rank < task.size for task in self.tasks.values())

    @property
    def sizes(self) -> Mapping[str, int]:
        """The counts of its pod sets."""
        counts: Counter[str] = Counter()
        for task in self.tasks.values():
            counts[task.pod_set] += max(0, task.size - task.from_rank)
        return {name: count for name, count in counts.items() if count}

    def is_for(self, key: Rank) -> bool:
        task = self.tasks.get(key.task)
        return task is not None and task.covers(key.rank)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queueing:
    """What is stored of the queue of a job. `admission` is by task; None while the job has none.

    `evicted` is Kueue's reason for the present or last eviction, and `evicted_because` its message. `deactivated` says
    that the Workload is deactivated: the job is paused until the Workload is active again, which an edit of a later
    generation than `deactivated_in` causes. `reclaimed` counts the pods of each pod set whose quota is given back.
    `further` are the Workloads that scale-ups have added to this admission.

    `queued_at` is when the job last began to wait, and `admitted_at` when it was admitted after that; None while it
    waits. `evicted_at` is when the eviction began. Records of earlier versions lack these times.
    """

    name: str
    admission: Mapping[str, TaskAdmission] | None = None
    evicted: str = ""
    evicted_because: str = ""
    deactivated: bool = False
    deactivated_in: int = 0
    reclaimed: Mapping[str, int] = field(default_factory=dict)
    queued_at: datetime | None = None
    admitted_at: datetime | None = None
    evicted_at: datetime | None = None
    further: tuple[RecordedWorkload, ...] = ()

    @property
    def first(self) -> RecordedWorkload:
        """The first Workload of the job."""
        is_admitted = self.admission is not None
        return RecordedWorkload(number=0, tasks=self.admission or {}, admitted=is_admitted, reclaimed=self.reclaimed)

    def admission_of(self, key: Rank) -> TaskAdmission | None:
        """Return the admission that covers the replica; None if none does."""
        found = (self.admission or {}).get(key.task)
        if found is not None and found.covers(key.rank):
            return found
        return next((item.tasks[key.task] for item in self.further if item.admitted and item.is_for(key)), None)

    def queue_again(self, now: datetime) -> "Queueing":
        """Return the record of a job that waits for another admission: for one Workload of its whole size."""
        return replace(self, admission=None, reclaimed={}, further=(), queued_at=now, admitted_at=None)

    @property
    def preemptor(self) -> UUID | None:
        """The uid of the job that Kueue's message names as the preemptor. It may belong to another client of Kueue."""
        found = _PREEMPTOR.search(self.evicted_because)
        return None if found is None else UUID(found[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """Kueue has admitted the job: its pods may run. `counts` are the pods of each pod set at the time of admission."""

    pod_sets: Mapping[str, PodSetAdmission]
    counts: Mapping[str, int] = field(default_factory=dict)


def task_admissions(
    verdict: Admitted, tasks: Mapping[str, TaskAdmission], ended: Sequence[Rank]
) -> Mapping[str, TaskAdmission]:
    """Return the admission of each task of a Workload. `tasks` are in the order of the job, with the ranks they cover.

    A pod set can have fewer places than replicas: as many replicas have none of those that `ended` before.
    """
    found: dict[str, TaskAdmission] = {}
    places: Counter[str] = Counter()
    missing = Counter(RecordedWorkload(number=0, tasks=tasks).sizes)
    missing.subtract(verdict.counts)
    for name, task in tasks.items():
        without = sorted(key.rank for key in ended if key.task == name and task.covers(key.rank))
        ranks = tuple(without[: max(0, missing[task.pod_set])])
        missing[task.pod_set] -= len(ranks)
        pods = verdict.pod_sets.get(task.pod_set, PodSetAdmission())
        found[name] = replace(task, pods=pods, first=places[task.pod_set], ended=ranks)
        places[task.pod_set] += task.size - task.from_rank - len(ranks)
    return found


def with_topology(admission: Mapping[str, TaskAdmission], verdict: Admitted) -> Mapping[str, TaskAdmission]:
    """Return a stored admission with the present topology: Kueue assigns another node in place of one that is lost."""
    found: dict[str, TaskAdmission] = {}
    for task, known in admission.items():
        present = verdict.pod_sets.get(known.pod_set, known.pods).topology
        topology = keep_places(known.pods.topology, present)
        is_same = topology == known.pods.topology
        found[task] = known if is_same else replace(known, pods=replace(known.pods, topology=topology))
    return found
