"""The plan of a job: the meaning of its spec in terms that are common to all kinds.

Nothing after the plan knows kinds; `docs/concepts.md` lists the concepts. A plan is a pure function of the stored
manifest, the identity of the job and whether it has been resumed, so it is never stored. Its size depends on the spec
and not on the number of replicas: it renders a replica on each request and keeps none.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum, unique
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from typing_extensions import override

from app.domain.reservations.name_ranges import NameRange
from app.domain.vocabulary import CleanUpPolicy, Quantifier, RestartPolicy, RestartScope, RuleOutcome, WarningSource

Manifest: TypeAlias = dict[str, Any]


class Rank(NamedTuple):
    """One replica of a job: its task and its rank in that task."""

    task: str
    rank: int

    @override
    def __str__(self) -> str:
        return f"{self.task}[{self.rank}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobIdentity:
    """The identity of a job, which every object of the job carries."""

    uid: str
    kind: str
    api_version: str
    namespace: str
    name: str
    generation: int
    installation: str
    credential: str = ""  # authenticates the pods of the job; empty in a plan for a dry run


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWarning:
    """A field of a valid manifest that does not have the effect that its author may expect.

    `pointer` leads to the field of the manifest; it is empty in a warning of the cluster, whose message names the field
    of the object. `task` is that of the pod that the cluster warned about.
    """

    source: WarningSource
    task: str | None = None
    pointer: str = ""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePlan:
    """A Service; `selector` is added to the selector labels of the job.

    A Service that maps its ports to other ports of the pod needs a virtual address, so it is not headless.
    """

    name: str
    ports: tuple[Manifest, ...]
    selector: Mapping[str, str]
    labels: Mapping[str, str]
    headless: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlan:
    """One desired pod: `template` is the pod template with the values of this rank."""

    key: Rank
    global_rank: int
    pod_name: str
    hostname: str
    subdomain: str | None
    template: Manifest
    labels: Mapping[str, str]
    service: ServicePlan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryableExits:
    """The failures after which a replica is restarted, by the end of `container`.

    The exit code is at least `least_code`, or the container left no termination message. It is not restarted if it ran
    out of memory or did not fail itself.
    """

    container: str
    least_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPlan:
    """`limit` restarts at most over `scope`; None is no limit. Disruptions are not counted.

    `retryable` restricts OnFailure to some failures; None means all.
    """

    policy: RestartPolicy
    limit: int | None
    scope: RestartScope = RestartScope.REPLICA
    retryable: RetryableExits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """A named group of replicas with the ranks 0 to `size` - 1. The size of an elastic task may change.

    `render` makes the replica of a rank; it is pure and can be called any number of times. `pod_name` returns the name
    of the pod of a rank without rendering it. `template` is what the templates of all ranks have in common. With
    `own_services`, every replica has a Service with the name of its pod. `least` is how many replicas of this task the
    job needs to work; None means all.
    """

    name: str
    restart: RestartPlan
    size: int
    pod_name: Callable[[int], str]
    render: Callable[[int], ReplicaPlan]
    template: Manifest
    elastic: bool = False
    least: int | None = None
    own_services: bool = False

    @property
    def needed(self) -> int:
        """How many replicas the job needs of this task."""
        return self.size if self.least is None else min(self.least, self.size)

    def ranks(self) -> Iterator[Rank]:
        """Yield the desired replicas of this task in ascending order."""
        return (Rank(self.name, rank) for rank in range(self.size))


class Ranks(AbstractSet[Rank]):
    """A set of replicas, kept as the ranks of each task in ascending order."""

    __slots__ = ("_by_task", "_members")

    def __init__(self, by_task: Mapping[str, Sequence[int]]) -> None:
        self._by_task = dict(by_task)
        # A rule may list ten thousand ranks, and its evaluation tests each replica of the job for membership.
        self._members: dict[str, Container[int]] = {
            task: ranks if isinstance(ranks, range) else frozenset(ranks) for task, ranks in by_task.items()
        }

    @override
    def __contains__(self, key: object) -> bool:
        return isinstance(key, Rank) and key.rank in self._members.get(key.task, ())

    @override
    def __iter__(self) -> Iterator[Rank]:
        return (Rank(task, rank) for task, ranks in self._by_task.items() for rank in ranks)

    @override
    def __len__(self) -> int:
        return sum(len(ranks) for ranks in self._by_task.values())


class ReplicaPlans(Mapping[Rank, ReplicaPlan]):
    """The desired replicas by rank in task order.

    Each access renders the replica again; iterating over keys is cheap.
    """

    __slots__ = ("_tasks",)

    def __init__(self, tasks: Sequence[TaskPlan]) -> None:
        self._tasks = {task.name: task for task in tasks}

    @override
    def __getitem__(self, key: Rank) -> ReplicaPlan:
        # A task renders any rank, so ranks beyond its size must be refused here.
        if key not in self:
            raise KeyError(key)
        return self._tasks[key.task].render(key.rank)

    # The default of Mapping would call __getitem__ and render the replica.
    @override
    def __contains__(self, key: object) -> bool:
        return isinstance(key, Rank) and key.task in self._tasks and 0 <= key.rank < self._tasks[key.task].size

    @override
    def __iter__(self) -> Iterator[Rank]:
        return (key for task in self._tasks.values() for key in task.ranks())

    @override
    def __len__(self) -> int:
        return sum(task.size for task in self._tasks.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishRule:
    """The job ends with `outcome` once all (or any) of `ranks` have reached it finally."""

    name: str
    outcome: RuleOutcome
    quantifier: Quantifier
    ranks: AbstractSet[Rank]


@unique
class GangApi(StrEnum):
    """The APIs of PodGroups: `app/domain/manifests/gangs.py` has the table."""

    KUBERNETES = "kubernetes"
    VOLCANO = "volcano"
    SCHEDULER_PLUGINS = "scheduler-plugins"
    TENSORSTACK = "tensorstack"


@dataclass(frozen=True, slots=True, kw_only=True)
class GangPlan:
    """The replicas that the scheduler places together or not at all: those that the job needs to work.

    `apis` are the APIs that the scheduler may read PodGroups of, the best one first. `api` is the one that is used, in
    the version `api_version`. It is None if the cluster serves none of them; each replica is then placed by itself. An
    empty `scheduler` is the default scheduler.
    """

    members: AbstractSet[Rank]
    apis: tuple[GangApi, ...]
    scheduler: str = ""
    queue: str = ""
    priority: int = 0
    priority_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    api: GangApi | None = None
    api_version: str = ""


@unique
class PriorityClassKind(StrEnum):
    """The kinds of classes that stand for a priority: that of Kueue, and that of Kubernetes."""

    WORKLOAD = "WorkloadPriorityClass"
    POD = "PriorityClass"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClassRef:
    """A class that stands for a priority."""

    kind: PriorityClassKind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePlan:
    """The queue that a job requests: a LocalQueue of Kueue.

    With `of_own_scheduler`, the manifest names a queue of TensorStack's scheduler. Kueue has it if the cluster does not
    serve the API of that scheduler, and has a LocalQueue of this name.
    """

    name: str
    of_own_scheduler: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsPlan:
    """The ConfigMap `name` with the hosts of all desired replicas, by task in order of rank."""

    name: str
    hosts: Mapping[str, tuple[str, ...]]


# No slots: cached_property stores its values in the __dict__ of the instance.
@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """The plan of one job. `rules` are evaluated in order, and the first that holds ends the job.

    `priority` is what the manifest requests of its queue: a class, or a number; without it, the cluster has a default.
    `fails_when_success_is_impossible` ends a job once no success rule can hold any more. With
    `suspends_rules` (debug mode), only a cancel or a deadline ends the job. `spare_pods` are names of pods that the job
    may need when it grows; no other job can use them. `missing_scheduler` is the requested scheduler if this cluster
    does not have it; the default one is used instead. `main_container` is the container whose end is the end of a
    replica, in pods that have it; a template can name another one. Durations are seconds.
    """

    identity: JobIdentity
    tasks: tuple[TaskPlan, ...]
    rules: tuple[FinishRule, ...]
    fails_when_success_is_impossible: bool
    services: tuple[ServicePlan, ...] = ()
    gang: GangPlan | None = None
    queue: QueuePlan | None = None
    priority: PriorityClassRef | int | None = None
    missing_scheduler: str | None = None
    hosts: HostsPlan | None = None
    spare_pods: tuple[NameRange, ...] = ()
    clean_up: CleanUpPolicy = CleanUpPolicy.NONE
    paused: bool = False
    suspends_rules: bool = False
    main_container: str | None = None
    active_deadline: int | None = None
    pending_deadline: int | None = None
    start_deadline: int | None = None
    ttl_after_finished: int | None = None

    @cached_property
    def replicas(self) -> Mapping[Rank, ReplicaPlan]:
        """Every desired replica by its rank, in task order. Each access renders the replica."""
        return ReplicaPlans(self.tasks)

    @property
    def size(self) -> int:
        """The number of desired replicas."""
        return sum(task.size for task in self.tasks)

    @property
    def minimum(self) -> int:
        """The number of replicas that the job needs to work."""
        return sum(task.needed for task in self.tasks)

    @cached_property
    def task(self) -> Mapping[str, TaskPlan]:
        """The tasks by name."""
        return {task.name: task for task in self.tasks}

    def pod_name(self, key: Rank) -> str:
        """Return the name of the pod of a desired replica."""
        return self.task[key.task].pod_name(key.rank)

    @cached_property
    def restarts(self) -> Mapping[str, RestartPlan]:
        """Restart plan by task name."""
        return {task.name: task.restart for task in self.tasks}

    @cached_property
    def elastic(self) -> frozenset[str]:
        """The names of the tasks that can be resized."""
        return frozenset(task.name for task in self.tasks if task.elastic)
