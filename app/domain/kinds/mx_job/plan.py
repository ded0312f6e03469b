"""Plans an MxJob: names, environment of the parameter server, Service of the scheduler, finish rules by mode."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from app.domain.kinds.accelerators import with_accelerators
from app.domain.kinds.envelope import client_deadlines
from app.domain.kinds.job_kind import Site
from app.domain.kinds.mx_job.spec import Mode, MxJobSpec, MxReplicaSpec, MxRole
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
    RetryableExits,
    ServicePlan,
    TaskPlan,
)
from app.domain.vocabulary import CleanUpPolicy, Quantifier, RestartPolicy, RuleOutcome

MXNET: Final = "mxnet"  # upstream judges a replica by the container of this name
PORT_NAME: Final = "ps-root-port"
# As upstream: a signal (128 and above) may have a passing cause; the program would return its own exit codes again.
_RESTART: Final = RestartPlan(
    policy=RestartPolicy.ON_FAILURE, limit=None, retryable=RetryableExits(container=MXNET, least_code=128)
)


def replica_name(job: str, task: str, runtime_id: str, rank: int) -> str:
    """Return the name of a replica's pod, its host name, and for the scheduler also the name of its Service."""
    return f"{job}-{task}-{runtime_id}-{rank}"


def plan_job(spec: MxJobSpec, manifest: Manifest, identity: JobIdentity, site: Site) -> JobPlan:
    """Return the plan of an accepted spec."""
    return JobPlan(
        identity=identity,
        tasks=_tasks(spec, identity.name, site),
        rules=_rules(spec),
        fails_when_success_is_impossible=False,
        missing_scheduler=_missing_scheduler(spec, site),
        clean_up=CleanUpPolicy.NONE,
        main_container=MXNET,
        **client_deadlines(manifest),
    )


def labels_of(role: MxRole, runtime_id: str, rank: int) -> Mapping[str, str]:
    """Return the labels that mxnet-operator sets on a replica, by which users select it."""
    return {"mxnet.mlkube.io": "", "job_type": role.value, "runtime_id": runtime_id, "task_index": str(rank)}


def _tasks(spec: MxJobSpec, job: str, site: Site) -> tuple[TaskPlan, ...]:
    tasks: list[TaskPlan] = []
    first = 0
    for _, replica in spec.roles:
        template = _template(spec, replica, job, site)
        role = MxRole(replica.mx_replica_type)
        tasks.append(
            TaskPlan(
                name=role.task,
                restart=_RESTART,
                size=replica.replicas,
                pod_name=partial(replica_name, job, role.task, spec.runtime_id or ""),
                render=partial(_replica, spec, replica, job, template, first),
                template=template,
                own_services=role is MxRole.SCHEDULER,
            )
        )
        first += replica.replicas
    return tuple(tasks)


def _replica(
    spec: MxJobSpec, replica: MxReplicaSpec, job: str, template: Manifest, first: int, rank: int
) -> ReplicaPlan:
    role, runtime_id = MxRole(replica.mx_replica_type), spec.runtime_id or ""
    name = replica_name(job, role.task, runtime_id, rank)
    labels = labels_of(role, runtime_id, rank)
    is_root = role is MxRole.SCHEDULER
    return ReplicaPlan(
        key=Rank(role.task, rank),
        global_rank=first + rank,
        pod_name=name,
        # The name of a job without a scheduler may have dots; a host name may not.
        hostname=template["spec"].get("hostname") or name.replace(".", "-"),
        subdomain=template["spec"].get("subdomain"),
        template=template,
        labels=labels,
        service=_root_service(name, replica.ps_root_port, labels) if is_root else None,
    )


def _root_service(name: str, port: int, labels: Mapping[str, str]) -> ServicePlan:
    """Return the headless Service of the scheduler. The scheduler binds the address of its name (dmlc/ps-lite#129)."""
    return ServicePlan(name=name, ports=({"name": PORT_NAME, "port": port},), selector=labels, labels=labels)


def _template(spec: MxJobSpec, replica: MxReplicaSpec, job: str, site: Site) -> Manifest:
    """Return the pod template of a role with all additions.

    Its restartPolicy is Never, since jobgate restarts replicas.
    """
    template = replica.template or {}
    pod_spec = with_accelerators(with_own_scheduler(template["spec"], site), MXNET, site.accelerators)
    if spec.job_mode == Mode.DIST:
        variables = _variables(spec, MxRole(replica.mx_replica_type), job)
        pod_spec = {**pod_spec, "containers": [_with_env(container, variables) for container in pod_spec["containers"]]}
    return {**template, "spec": {**pod_spec, "restartPolicy": "Never"}}


def _variables(spec: MxJobSpec, role: MxRole, job: str) -> Mapping[str, str]:
    """Return the environment variables that ps-lite reads."""
    specs = {replica.mx_replica_type: replica for _, replica in spec.roles}
    root = replica_name(job, MxRole.SCHEDULER.task, spec.runtime_id or "", 0)
    return {
        "DMLC_PS_ROOT_PORT": str(specs[MxRole.SCHEDULER].ps_root_port),
        "DMLC_PS_ROOT_URI": root,
        "DMLC_NUM_SERVER": str(specs[MxRole.SERVER].replicas),
        "DMLC_NUM_WORKER": str(specs[MxRole.WORKER].replicas),
        "DMLC_ROLE": role.task,
    }


def _with_env(container: Manifest, variables: Mapping[str, str]) -> Manifest:
    """Return the container. The mxnet container gets the variables that the user did not set."""
    if container["name"] != MXNET:
        return container
    own: Sequence[Manifest] = container.get("env") or []
    taken = {variable["name"] for variable in own}
    added = [{"name": name, "value": value} for name, value in variables.items() if name not in taken]
    return {**container, "env": [*own, *added]}


def _rules(spec: MxJobSpec) -> tuple[FinishRule, ...]:
    """Return the finish rules.

    Success comes first: once the deciding role has succeeded, other failures do not count.
    """
    decides = MxRole.SCHEDULER if spec.job_mode == Mode.DIST else MxRole.WORKER
    sizes = {MxRole(replica.mx_replica_type).task: replica.replicas for _, replica in spec.roles}
    return (
        FinishRule(
            name=f"{decides.task}Succeeded",
            outcome=RuleOutcome.SUCCESS,
            quantifier=Quantifier.ALL,
            ranks=Ranks({decides.task: range(sizes[decides.task])}),
        ),
        FinishRule(
            name="anyReplicaFailed",
            outcome=RuleOutcome.FAILURE,
            quantifier=Quantifier.ANY,
            ranks=Ranks({task: range(size) for task, size in sizes.items()}),
        ),
    )


def _missing_scheduler(spec: MxJobSpec, site: Site) -> str | None:
    named = ((replica.template or {})["spec"].get("schedulerName") for _, replica in spec.roles)
    return next((name for name in named if name in site.schedulers and not site.schedulers[name]), None)
