"""Short constructors of plans, pods, attempts and records, so that each case of a table fits on one line."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from app.domain.errors import FieldError, InvalidManifest
from app.domain.kinds.job_kind import Given, JobKind, Limits
from app.domain.manifests.rendered import reserved_names
from app.domain.plan import FinishRule, JobIdentity, JobPlan, Manifest, Rank, ReplicaPlan, RestartPlan, TaskPlan
from app.domain.reconcile.reconcile import reconcile
from app.domain.reconcile.timing import Timing
from app.domain.reconcile.values import Decision, Inputs
from app.domain.reservations.pod_limits import RoomWait
from app.domain.status.observed import ObservedJob, ObservedPod
from app.domain.status.records import Attempt, Intent, JobStatus, Recorded, Replica
from app.domain.vocabulary import Evidence, JobPhase, Outcome, Quantifier, ReplicaPhase, RestartPolicy, RuleOutcome

# A constant suffix instead of a random one.
GIVEN = Given(suffix=lambda: "x7k2m")
T0 = datetime(2030, 1, 1, tzinfo=UTC)
W0, W1 = Rank("worker", 0), Rank("worker", 1)

ON_FAILURE = RestartPlan(policy=RestartPolicy.ON_FAILURE, limit=0)
ENDED_PHASES = (ReplicaPhase.SUCCEEDED, ReplicaPhase.FAILED)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def ranks(*names: str) -> frozenset[Rank]:
    """`worker0` is rank 0 of task `worker`."""
    return frozenset(Rank(name[:-1], int(name[-1])) for name in names)


def success(*names: str, quantifier: Quantifier = Quantifier.ALL, name: str = "successRules[0]") -> FinishRule:
    return FinishRule(name=name, outcome=RuleOutcome.SUCCESS, quantifier=quantifier, ranks=ranks(*names))


def failure(*names: str, quantifier: Quantifier = Quantifier.ALL, name: str = "failureRules[0]") -> FinishRule:
    return FinishRule(name=name, outcome=RuleOutcome.FAILURE, quantifier=quantifier, ranks=ranks(*names))


def restarting(limit: int | None = 1, policy: RestartPolicy = RestartPolicy.ON_FAILURE, **more: Any) -> RestartPlan:
    return RestartPlan(policy=policy, limit=limit, **more)


def a_pod_name(task: str, rank: int) -> str:
    return f"job-{task}-{rank}"


def a_replica_plan(task: str, first: int, rank: int) -> ReplicaPlan:
    name = a_pod_name(task, rank)
    return ReplicaPlan(
        key=Rank(task, rank),
        global_rank=first + rank,
        pod_name=name,
        hostname=name,
        subdomain="job",
        template={"spec": {"containers": [{"name": "train"}]}},
        labels={},
    )


def a_plan(
    tasks: Mapping[str, int] | None = None,
    rules: Iterable[FinishRule] | None = None,
    restart: RestartPlan | Mapping[str, RestartPlan] = ON_FAILURE,
    *,
    fails_when_success_is_impossible: bool = True,
    least: int | None = None,
    **more: Any,
) -> JobPlan:
    """A job of two workers, which by default succeeds when both succeed. It needs `least` replicas of each task."""
    tasks = tasks or {"worker": 2}
    every = [Rank(task, rank) for task, count in tasks.items() for rank in range(count)]
    if rules is None:
        name = "successRules[0]"
        rules = [FinishRule(name=name, outcome=RuleOutcome.SUCCESS, quantifier=Quantifier.ALL, ranks=frozenset(every))]
    identity = JobIdentity(
        uid="u", kind="GenericJob", api_version="v1", namespace="ns", name="job", generation=1, installation="i"
    )
    return JobPlan(
        identity=identity,
        tasks=tuple(
            TaskPlan(
                name=task,
                restart=restart if isinstance(restart, RestartPlan) else restart[task],
                size=count,
                pod_name=partial(a_pod_name, task),
                render=partial(a_replica_plan, task, every.index(Rank(task, 0)) if count else 0),
                template={"spec": {"containers": [{"name": "train"}]}},
                least=least,
            )
            for task, count in tasks.items()
        ),
        rules=tuple(rules),
        fails_when_success_is_impossible=fails_when_success_is_impossible,
        **more,
    )


def with_templates(
    plan: JobPlan, specs: Mapping[str, Manifest], metadata: Mapping[str, Manifest] | None = None
) -> JobPlan:
    """The plan with further fields in the pods of some tasks, and with metadata."""

    def of_task(task: TaskPlan) -> TaskPlan:
        container = {"name": "train", "image": "i", "env": [{"name": "A"}, {"name": "A"}], "command": ["run"]}
        spec = {"containers": [container], "hostNetwork": True, **specs.get(task.name, {})}
        template = {"metadata": (metadata or {}).get(task.name, {}), "spec": spec}
        return replace(
            task, template=template, render=lambda rank: replace(a_replica_plan(task.name, 0, rank), template=template)
        )

    return replace(plan, tasks=tuple(map(of_task, plan.tasks)))


def an_elastic_plan(plan: JobPlan, task: str, replicas: int) -> JobPlan:
    """The next generation of the plan, with that size of the task. Rules over all ranks include the new ranks."""
    every = [key for key in plan.replicas if key.task != task] + [Rank(task, rank) for rank in range(replicas)]
    tasks = tuple(replace(one, size=replicas) if one.name == task else one for one in plan.tasks)
    rules = tuple(replace(one, ranks=frozenset(every)) if len(one.ranks) > 1 else one for one in plan.rules)
    identity = replace(plan.identity, generation=plan.identity.generation + 1)
    return replace(plan, tasks=tasks, rules=rules, identity=identity)


def a_pod(
    key: Rank = W0,
    phase: ReplicaPhase = ReplicaPhase.RUNNING,
    *,
    attempt: int = 1,
    uid: str | None = None,
    name: str | None = None,
    ended: bool | None = None,
    **more: Any,
) -> ObservedPod:
    """A pod of that rank. Its uid contains rank and attempt, and it has ended if its phase is final."""
    return ObservedPod(
        name=name or f"job-{key.task}-{key.rank}",
        uid=uid or pod_uid(key, attempt),
        key=key,
        attempt=attempt,
        phase=phase,
        ended=phase in ENDED_PHASES if ended is None else ended,
        **({"created_at": T0, "node": None if phase is ReplicaPhase.CREATING else "n1"} | more),
    )


def pod_uid(key: Rank, attempt: int = 1) -> str:
    return f"{key.task}{key.rank}-{attempt}"


def an_attempt(number: int = 1, *, key: Rank = W0, seen: bool = True, **more: Any) -> Attempt:
    """An attempt, by default with a running pod. An ended attempt has captured evidence."""
    known: dict[str, Any] = {"pod_uid": pod_uid(key, number) if seen else None, "phase": ReplicaPhase.RUNNING}
    if "outcome" in more:
        known["evidence"] = Evidence.CAPTURED
        known["phase"] = {Outcome.SUCCEEDED: ReplicaPhase.SUCCEEDED, Outcome.FAILED: ReplicaPhase.FAILED}.get(
            more["outcome"], ReplicaPhase.DELETED
        )
    return Attempt(number=number, **(known | more))


def a_replica(key: Rank = W0, attempt: Attempt | None = None, **more: Any) -> Replica:
    return Replica(key=key, attempt=attempt or an_attempt(key=key), **more)


def ended(
    key: Rank, outcome: Outcome, *, settled: bool = True, how: Mapping[str, Any] | None = None, **more: Any
) -> Replica:
    """A replica whose attempt has ended. `how` are fields of the attempt, `more` fields of the replica."""
    return a_replica(key, an_attempt(key=key, **({"outcome": outcome} | dict(how or {}))), settled=settled, **more)


def by_rank(*replicas: Replica) -> dict[Rank, Replica]:
    return {replica.key: replica for replica in replicas}


def a_record(status: JobStatus | None = None, *replicas: Replica) -> Recorded:
    return Recorded(status=status or JobStatus(), replicas=by_rank(*replicas), created_at=T0)


def running_status(**more: Any) -> JobStatus:
    known: dict[str, Any] = {
        "phase": JobPhase.RUNNING,
        "reason": "ReplicasStarted",
        "started_at": T0,
        "active_since": T0,
    }
    return JobStatus(**(known | {"initialized_at": T0} | more))


def inputs(
    plan: JobPlan | None = None,
    recorded: Recorded | None = None,
    *pods: ObservedPod,
    intent: Intent | None = None,
    now: float = 0,
    timing: Timing | None = None,
    may_start: bool = True,
    room_wait: RoomWait | None = None,
    **observed: Any,
) -> Inputs:
    """The inputs of a reconcile. `now` is in seconds after T0."""
    return Inputs(
        plan=plan or a_plan(),
        intent=intent or Intent(generation=1),
        recorded=recorded or a_record(),
        observed=ObservedJob(pods=pods, **observed),
        now=at(now),
        timing=timing or Timing(),
        may_start=may_start,
        room_wait=room_wait,
    )


def decide(*args: Any, **more: Any) -> Decision:
    return reconcile(inputs(*args, **more))


def next_record(before: Recorded, decision: Decision) -> Recorded:
    """The record in PostgreSQL after the decision has been written."""
    closed = {record.seq for record in decision.scaled}
    return replace(
        before,
        status=decision.status,
        replicas=decision.replicas,
        scaling=[record for record in before.scaling if record.seq not in closed],
    )


def actions_of(decision: Decision, *types: type) -> list[Any]:
    return [action for action in decision.actions if isinstance(action, types)]


def errors_of(kind: JobKind[Any], manifest: Manifest, limits: Limits | None = None) -> tuple[FieldError, ...]:
    """What the kind finds wrong with a manifest that it refuses."""
    with pytest.raises(InvalidManifest) as refused:
        kind.accept(manifest, limits or Limits(), GIVEN)
    return refused.value.errors


def reserved(plan: JobPlan) -> list[tuple[str, str]]:
    """Kind and name of everything that the plan reserves, with every name of a range."""
    return [(names.kind, name) for names in reserved_names(plan) for name in names.names]


BOTH = (a_pod(W0), a_pod(W1))
"""The pods of a running job of two workers."""
RUNNING = a_record(running_status(), a_replica(W0), a_replica(W1, an_attempt(key=W1)))
"""The record of a running job of two workers."""
REMOVE = Intent(generation=1, remove=True)
"""The intent of a deletion."""


async def accept_any_plan(_plan: JobPlan) -> None:
    """Stand in for the check of plans where there is no database."""
