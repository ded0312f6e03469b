"""Plans a GenericJob: names, labels, run modes, finish rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from app.domain.kinds.envelope import client_deadlines
from app.domain.kinds.generic_job.spec import IDLE_COMMAND, GenericJobSpec, ReplicaSpec, ServicePortSpec, T9kScheduler
from app.domain.kinds.generic_job.variables import Scope, has_references, rank_dependent_bytes, with_variables
from app.domain.kinds.job_kind import Site
from app.domain.kinds.scheduling import with_own_scheduler
from app.domain.kubernetes import names
from app.domain.manifests.gangs import newest_version
from app.domain.plan import (
    FinishRule,
    GangApi,
    GangPlan,
    JobIdentity,
    JobPlan,
    Manifest,
    QueuePlan,
    Rank,
    Ranks,
    ReplicaPlan,
    RestartPlan,
    ServicePlan,
    TaskPlan,
)
from app.domain.vocabulary import CleanUpPolicy, Quantifier, RestartPolicy, RuleOutcome

JOB_LABEL: Final = "genericjob"
REPLICA_LABEL: Final = "genericjob-replica"
IMPLIED_RULE: Final = "allReplicas"
UPSTREAM_SCHEDULER: Final = "t9k-scheduler"
_GANG_PREFIX: Final = "scheduler.tensorstack.dev/"


def replica_name(job: str, task: str, rank: int) -> str:
    """Return the name of a replica's pod, which is also its host name and the name of its Service."""
    return f"{job}-{task}-{rank}"


def scope_of(spec: GenericJobSpec, job: str) -> Scope:
    ports = spec.service.ports if spec.service else []
    return Scope(
        job=job,
        replicas={replica.type: replica.replicas for replica in spec.replica_specs},
        ports={port.name or "": port.port for port in ports} if ports else None,
    )


def plan_job(spec: GenericJobSpec, manifest: Manifest, identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
    """Return the plan of an accepted spec."""
    queueing = spec.scheduler.t9k_scheduler if spec.scheduler else None
    return JobPlan(
        identity=identity,
        tasks=_tasks(spec, identity.name, resumed=resumed, site=site),
        rules=_rules(spec),
        fails_when_success_is_impossible=True,
        gang=_gang(spec, queueing, identity.name, site) if queueing else None,
        queue=_queue(queueing) if queueing else None,
        priority=(queueing.priority or None) if queueing else None,
        clean_up=CleanUpPolicy(spec.clean_up_policy),
        paused=spec.run_mode.pause.enabled,
        suspends_rules=spec.run_mode.debug.enabled,
        **client_deadlines(manifest),
    )


def template_in_mode(spec: GenericJobSpec, replica: ReplicaSpec, *, resumed: bool) -> Manifest:
    """Return the pod template of a type in the present run mode. restartPolicy is Never: jobgate restarts replicas."""
    pod_spec = (
        _debug_spec(spec, replica) or (_resume_spec(spec, replica) if resumed else None) or replica.template["spec"]
    )
    return {**replica.template, "spec": {**pod_spec, "restartPolicy": "Never"}}


def _debug_spec(spec: GenericJobSpec, replica: ReplicaSpec) -> Manifest | None:
    """Return the pod spec of debug mode, or None.

    The command is idle, so args and the probes that need it are dropped.
    """
    debug = spec.run_mode.debug
    if not debug.enabled:
        return None
    chosen = next((item for item in debug.replica_specs if item.type == replica.type), None)
    # A list of types restricts debug mode to them. Without a list, all types are debugged.
    if chosen is None and debug.replica_specs:
        return None
    command = chosen.command if chosen else [*IDLE_COMMAND]
    # A readiness probe that fails restarts nothing, so it stays.
    idle = {"args", "livenessProbe", "startupProbe"}
    pod_spec: Manifest = replica.template["spec"]
    containers = [
        {**{key: value for key, value in container.items() if key not in idle}, "command": command}
        for container in pod_spec["containers"]
    ]
    return _without_init(pod_spec, skip=chosen is not None and chosen.skip_init_container) | {"containers": containers}


def _resume_spec(spec: GenericJobSpec, replica: ReplicaSpec) -> Manifest | None:
    chosen = next((item for item in spec.run_mode.pause.resume_specs if item.type == replica.type), None)
    if chosen is None:
        return None
    given = {"command": chosen.command, "args": chosen.args}
    overrides = {key: value for key, value in given.items() if value is not None}
    pod_spec: Manifest = replica.template["spec"]
    containers = [container | overrides for container in pod_spec["containers"]]
    return _without_init(pod_spec, skip=chosen.skip_init_container) | {"containers": containers}


def _without_init(pod_spec: Manifest, *, skip: bool) -> Manifest:
    """Return the pod spec without init containers if `skip`.

    Sidecars stay, since they run along with the containers.
    """
    if not skip or not pod_spec.get("initContainers"):
        return pod_spec
    sidecars = [item for item in pod_spec["initContainers"] if item.get("restartPolicy") == "Always"]
    return {**pod_spec, "initContainers": sidecars}


def _tasks(spec: GenericJobSpec, job: str, *, resumed: bool, site: Site) -> tuple[TaskPlan, ...]:
    scope = scope_of(spec, job)
    service = _service_of_each(spec.service.ports) if spec.service and spec.service.ports else None
    queueing = spec.scheduler.t9k_scheduler if spec.scheduler else None
    tasks: list[TaskPlan] = []
    first = 0
    for replica in spec.replica_specs:
        template = template_in_mode(spec, replica, resumed=resumed)
        common = _set_scheduler(template["spec"], queueing, site)
        is_varied = has_references(common)
        if is_varied:
            common = with_variables(common, scope, replica.type, None)
        source = _Source(
            job=job,
            task=replica.type,
            first=first,
            template={**template, "spec": common},
            scope=scope if is_varied and rank_dependent_bytes(common) else None,
            queueing=queueing,
            service=service,
        )
        tasks.append(
            TaskPlan(
                name=replica.type,
                restart=_restart(replica),
                size=replica.replicas,
                pod_name=partial(replica_name, job, replica.type),
                render=source.replica,
                template=source.template,
                own_services=service is not None,
            )
        )
        first += replica.replicas
    return tuple(tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """The inputs for rendering the replicas of one type.

    In `template`, every variable except $(rank) is replaced; `scope` is None if no text contains $(rank). `first` is
    the global rank of rank 0. `service` is the common part of the Services of the replicas.
    """

    job: str
    task: str
    first: int
    template: Manifest
    scope: Scope | None
    queueing: T9kScheduler | None
    service: ServicePlan | None

    def replica(self, rank: int) -> ReplicaPlan:
        pod_spec = self.template["spec"]
        if self.scope is not None:
            pod_spec = with_variables(pod_spec, self.scope, self.task, rank)
        name = replica_name(self.job, self.task, rank)
        labels = labels_of(self.job, self.task, rank, self.queueing)
        return ReplicaPlan(
            key=Rank(self.task, rank),
            global_rank=self.first + rank,
            pod_name=name,
            # The name of a job without Services may have dots; a host name may not.
            hostname=pod_spec.get("hostname") or name.replace(".", "-"),
            subdomain=pod_spec.get("subdomain"),
            template={**self.template, "spec": pod_spec},
            labels=labels,
            service=_service(self.service, name, labels) if self.service else None,
        )


def labels_of(job: str, task: str, rank: int, queueing: T9kScheduler | None) -> Mapping[str, str]:
    """Return the labels by which upstream's users and scheduler select a replica."""
    found = {
        JOB_LABEL: job,
        REPLICA_LABEL: replica_name(job, task, rank),
        "tensorstack.dev/component": "genericjob",
        "tensorstack.dev/component-type": "user",
        "tensorstack.dev/owner-name": job,
    }
    if queueing:
        found |= {
            _GANG_PREFIX + "group-name": job,
            _GANG_PREFIX + "queue": queueing.queue,
            _GANG_PREFIX + "role": task,
        }
    return found


def _service_of_each(ports: Sequence[ServicePortSpec]) -> ServicePlan:
    """Return the common part of the Services. Ports that differ from the pod's need a Service that is not headless."""
    return ServicePlan(
        name="",
        ports=tuple(port.model_dump(by_alias=True, exclude_none=True) for port in ports),
        selector={},
        labels={},
        headless=all(port.target_port in (None, 0, "", port.port) for port in ports),
    )


def _service(common: ServicePlan, name: str, replica_labels: Mapping[str, str]) -> ServicePlan:
    own = {key: value for key, value in replica_labels.items() if not key.startswith(_GANG_PREFIX)}
    return replace(common, name=name, selector={REPLICA_LABEL: name}, labels=own)


def _restart(replica: ReplicaSpec) -> RestartPlan:
    """Return the restart plan. As in upstream, Always without a limit is unlimited; the other policies default to 0."""
    wanted = replica.restart_policy
    unlimited = wanted.policy == "Always" and wanted.limit is None
    return RestartPlan(policy=RestartPolicy(wanted.policy), limit=None if unlimited else wanted.limit or 0)


def _rules(spec: GenericJobSpec) -> tuple[FinishRule, ...]:
    """Return the finish rules. Success rules come first, so a job for which both kinds hold at once has succeeded."""
    if spec.success_rules:
        success = [_rule("successRules", RuleOutcome.SUCCESS, i, rule) for i, rule in enumerate(spec.success_rules)]
    else:
        ranks = Ranks({item.type: range(item.replicas) for item in spec.replica_specs})
        success = [FinishRule(name=IMPLIED_RULE, outcome=RuleOutcome.SUCCESS, quantifier=Quantifier.ALL, ranks=ranks)]
    failure = [_rule("failureRules", RuleOutcome.FAILURE, i, rule) for i, rule in enumerate(spec.failure_rules)]
    return (*success, *failure)


def _rule(field: str, outcome: RuleOutcome, index: int, rule: Mapping[str, Sequence[int]]) -> FinishRule:
    ranks = Ranks({task: sorted(set(members)) for task, members in rule.items()})
    return FinishRule(name=f"{field}[{index}]", outcome=outcome, quantifier=Quantifier.ALL, ranks=ranks)


def _set_scheduler(pod_spec: Manifest, queueing: T9kScheduler | None, site: Site) -> Manifest:
    """Return the pod spec with this cluster's name of the requested scheduler; without one, its default scheduler."""
    if not queueing:
        return with_own_scheduler(pod_spec, site)
    rest = {key: value for key, value in pod_spec.items() if key != "schedulerName"}
    here = site.schedulers.get(UPSTREAM_SCHEDULER)
    return {**rest, "schedulerName": here} if here else rest


def _queue(queueing: T9kScheduler) -> QueuePlan | None:
    """Return the queue as one of Kueue; None if no LocalQueue can have its name."""
    if names.dns_subdomain(queueing.queue) is not None:
        return None
    return QueuePlan(name=queueing.queue, of_own_scheduler=True)


def _gang(spec: GenericJobSpec, queueing: T9kScheduler, job: str, site: Site) -> GangPlan:
    return GangPlan(
        members=Ranks({replica.type: range(replica.replicas) for replica in spec.replica_specs}),
        apis=(GangApi.TENSORSTACK,),
        scheduler=site.schedulers.get(UPSTREAM_SCHEDULER) or "",
        queue=queueing.queue,
        priority=queueing.priority,
        labels={JOB_LABEL: job},
        api=GangApi.TENSORSTACK,
        api_version=newest_version(GangApi.TENSORSTACK),
    )
