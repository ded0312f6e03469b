"""Plans a DIJob: names, labels, environment, and a restart limit for the whole job."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from app.domain.kinds.di_job.bounds import largest_sizes, least_total
from app.domain.kinds.di_job.environment import pod_name, service_name, shared_variables, with_variables
from app.domain.kinds.di_job.members import DEFAULT_PORT, PORT_NAME, ranks
from app.domain.kinds.di_job.spec import DIJobSpec, TaskSpec
from app.domain.kinds.envelope import client_deadlines
from app.domain.kinds.job_kind import Site
from app.domain.kinds.scheduling import with_own_scheduler
from app.domain.plan import (
    FinishRule,
    JobIdentity,
    JobPlan,
    Manifest,
    Rank,
    Ranks,
    ReplicaPlan,
    RestartPlan,
    ServicePlan,
    TaskPlan,
)
from app.domain.reservations.name_ranges import NameKind, NameRange
from app.domain.vocabulary import CleanUpPolicy, Quantifier, RestartPolicy, RestartScope, RuleOutcome

JOB_LABEL: Final = "diengine/job"
OPERATOR_LABEL: Final = "diengine/operator"
OPERATOR: Final = "di-operator"
SUCCESS_RULE: Final = "allReplicas"
FAILURE_RULE: Final = "anyReplica"
_CLEAN_UP: Final[Mapping[str, CleanUpPolicy]] = {
    "Running": CleanUpPolicy.UNFINISHED,
    "All": CleanUpPolicy.ALL,
    "None": CleanUpPolicy.NONE,
}


def plan_job(spec: DIJobSpec, manifest: Manifest, identity: JobIdentity, site: Site) -> JobPlan:
    ranked = ranks(manifest)
    all_ranks = Ranks({task: range(len(of_task)) for task, of_task in ranked.items()})
    requested = [task.template["spec"].get("schedulerName") for task in spec.tasks]
    return JobPlan(
        identity=identity,
        tasks=_tasks(spec, identity, ranked, site),
        rules=(
            _rule(SUCCESS_RULE, RuleOutcome.SUCCESS, Quantifier.ALL, all_ranks),
            _rule(FAILURE_RULE, RuleOutcome.FAILURE, Quantifier.ANY, all_ranks),
        ),
        # The failure rule ends the job as soon as one replica has failed, so success cannot become impossible before.
        fails_when_success_is_impossible=False,
        services=(_service(identity.name),),
        missing_scheduler=next(
            (name for name in requested if name in site.schedulers and not site.schedulers[name]), None
        ),
        spare_pods=_spare_pods(spec, identity.name),
        clean_up=_CLEAN_UP[spec.clean_pod_policy],
        **client_deadlines(manifest),
    )


def job_labels(job: str) -> dict[str, str]:
    return {JOB_LABEL: job, OPERATOR_LABEL: OPERATOR}


def pod_template(spec: DIJobSpec, task: TaskSpec) -> Manifest:
    """Return the task's template with the job's volumes. restartPolicy is Never, since jobgate restarts replicas."""
    pod_spec: Manifest = {**task.template["spec"], "restartPolicy": "Never"}
    if spec.volumes:
        pod_spec["volumes"] = [*(pod_spec.get("volumes") or ()), *spec.volumes]
    return {**task.template, "spec": pod_spec}


def _rule(name: str, outcome: RuleOutcome, quantifier: Quantifier, members: Ranks) -> FinishRule:
    return FinishRule(name=name, outcome=outcome, quantifier=quantifier, ranks=members)


def _service(job: str) -> ServicePlan:
    return ServicePlan(
        name=service_name(job),
        ports=({"name": PORT_NAME, "port": DEFAULT_PORT},),
        selector=job_labels(job),
        labels=job_labels(job),
    )


def _spare_pods(spec: DIJobSpec, job: str) -> tuple[NameRange, ...]:
    """Return the pod names to reserve for growth. Without maxReplicas there are none, since growth has no known end."""
    if spec.max_replicas is None:
        return ()
    largest = largest_sizes(spec, job, spec.max_replicas)
    return tuple(
        NameRange(NameKind.POD, pod_name(job, task.name, task.replicas), largest[task.name] - task.replicas)
        for task in spec.tasks
        if largest[task.name] > task.replicas
    )


def _tasks(
    spec: DIJobSpec, identity: JobIdentity, ranked: Mapping[str, Sequence[int]], site: Site
) -> tuple[TaskPlan, ...]:
    # Computed once for all replicas: the lists of hosts may have 128 KiB. A rendered replica adds only its DI_RANK.
    shared = shared_variables(identity, ranked, site.server_url)
    restart = RestartPlan(policy=RestartPolicy.ON_FAILURE, limit=spec.backoff_limit, scope=RestartScope.JOB)
    sizes = {task: len(of_task) for task, of_task in ranked.items()}
    total = sum(sizes.values())
    least = _least(spec, sizes)
    tasks: list[TaskPlan] = []
    for task in spec.tasks:
        template = _with_variables(pod_template(spec, task), shared)
        template["spec"] = with_own_scheduler(template["spec"], site)
        tasks.append(
            TaskPlan(
                name=task.name,
                restart=restart,
                size=sizes[task.name],
                pod_name=partial(pod_name, identity.name, task.name),
                render=partial(_replica, task, template, identity.name, ranked[task.name], total),
                template=template,
                elastic=True,
                least=least[task.name],
            )
        )
    return tuple(tasks)


def _least(spec: DIJobSpec, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """Return how many replicas of each task the job needs to work: minReplicas of all tasks together.

    Each task has at least one of them. The others are of the first tasks, as far as these have so many.
    """
    left = least_total(spec) - len(spec.tasks)
    least: dict[str, int] = {}
    for task in spec.tasks:
        more = min(left, sizes[task.name] - 1)
        left -= more
        least[task.name] = 1 + more
    return least


def _replica(
    task: TaskSpec, template: Manifest, job: str, global_ranks: Sequence[int], total: int, rank: int
) -> ReplicaPlan:
    name, global_rank = pod_name(job, task.name, rank), global_ranks[rank]
    annotations = {
        "diengine/replicas": str(total),
        "diengine/rank": str(global_rank),
        "diengine/task-rank": str(rank),
        "diengine/node": "",  # upstream's allocator sets it; jobgate leaves the choice to the scheduler
    }
    metadata = template.get("metadata") or {}
    metadata = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}
    return ReplicaPlan(
        key=Rank(task.name, rank),
        global_rank=global_rank,
        pod_name=name,
        hostname=name,
        subdomain=service_name(job),
        template={**_with_variables(template, {"DI_RANK": str(global_rank)}), "metadata": metadata},
        labels={
            **job_labels(job),
            "diengine/pod": name,
            "diengine/task-type": task.type,
            "diengine/task-name": task.name,
        },
    )


def _with_variables(template: Manifest, variables: Mapping[str, str]) -> Manifest:
    containers = with_variables(template["spec"]["containers"], variables)
    return {**template, "spec": {**template["spec"], "containers": containers}}
