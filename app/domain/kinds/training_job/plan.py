"""Plans a TrainingJob: roles, names, labels, finish rules, and the list of hosts."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from app.domain.kinds.envelope import client_deadlines
from app.domain.kinds.job_kind import Site
from app.domain.kinds.scheduling import scheduler_here
from app.domain.kinds.training_job.spec import TrainingJobSpec
from app.domain.kinds.training_job.templates import MASTER, PRIORITY, PSERVER, TRAINER, role_template
from app.domain.plan import (
    FinishRule,
    HostsPlan,
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
from app.domain.vocabulary import CleanUpPolicy, Quantifier, RestartPolicy, RuleOutcome

TRAINERS_FAILED: Final = "trainersFailed"
TRAINERS_DONE: Final = "trainersDone"
PSERVER_RESTART_LIMIT: Final = "pserverRestartLimit"

_JOB_LABELS: Final = {MASTER: "paddle-job-master", PSERVER: "paddle-job-pserver", TRAINER: "paddle-job"}


def pod_name(job: str, role: str, rank: int) -> str:
    """Return the name of a replica's pod, which is also its host name."""
    return f"{job}-{role}-{rank}"


def host_name(job: str, namespace: str, role: str, rank: int) -> str:
    """Return the DNS name by which pods of the cluster reach a replica."""
    # Without the domain of the cluster, which the search path in a pod's resolv.conf adds.
    return f"{pod_name(job, role, rank)}.{job}.{namespace}.svc"


def index_label(namespace: str, job: str, role: str) -> str:
    """Return the key of the label that has the index of a trainer."""
    return f"{namespace}/{job}-{role}-idx"


def hosts_name(job: str) -> str:
    """Return the name of the ConfigMap with the list of hosts."""
    return f"{job}-hosts"


def sizes(spec: TrainingJobSpec, trainers: int) -> Mapping[str, int]:
    """Return the replicas of each role in global rank order. Trainers are last, so resizing changes no other rank."""
    wanted = {MASTER: 1 if spec.fault_tolerant else 0, PSERVER: spec.pservers, TRAINER: trainers}
    return {role: count for role, count in wanted.items() if count}


def plan_job(spec: TrainingJobSpec, trainers: int, manifest: Manifest, identity: JobIdentity, site: Site) -> JobPlan:
    """Return the plan of a spec with this number of trainers.

    Every fault tolerant job has the list of hosts, even if its size is fixed: an edit may change the bounds later, and
    the volumes of existing pods cannot change.
    """
    job = identity.name
    wanted = sizes(spec, trainers)
    deadlines = client_deadlines(manifest)
    active = [deadlines["active_deadline"], spec.annotations.walltime or None]
    return JobPlan(
        identity=identity,
        tasks=_tasks(spec, wanted, identity, site),
        rules=_rules(spec, wanted),
        fails_when_success_is_impossible=False,
        # The Service only gives the pods DNS names, for which it needs no ports.
        services=(ServicePlan(name=job, ports=(), selector={}, labels={}),),
        missing_scheduler=next((lacking for role in wanted if (lacking := _scheduler(spec, role, site)[1])), None),
        hosts=_hosts(wanted, identity) if spec.fault_tolerant else None,
        spare_pods=_spare_pods(job, trainers, spec.trainer.max_instance),
        clean_up=CleanUpPolicy.ALL if site.auto_clean else CleanUpPolicy.UNFINISHED,
        **(deadlines | {"active_deadline": min((item for item in active if item is not None), default=None)}),
    )


def _spare_pods(job: str, trainers: int, most: int) -> tuple[NameRange, ...]:
    """Return the pod names to reserve for further trainers."""
    if most <= trainers:
        return ()
    return (NameRange(NameKind.POD, pod_name(job, TRAINER, trainers), most - trainers),)


def _tasks(spec: TrainingJobSpec, wanted: Mapping[str, int], identity: JobIdentity, site: Site) -> tuple[TaskPlan, ...]:
    tasks: list[TaskPlan] = []
    first = 0
    for role, count in wanted.items():
        template = role_template(
            spec,
            role,
            identity.name,
            scheduler=_scheduler(spec, role, site)[0],
            hosts=hosts_name(identity.name) if spec.fault_tolerant else None,
        ).template
        tasks.append(
            TaskPlan(
                name=role,
                restart=_restart(role, site),
                size=count,
                pod_name=partial(pod_name, identity.name, role),
                render=partial(_replica, spec, identity, role, template, first),
                template=template,
                elastic=role == TRAINER,  # an edit of both bounds resizes trainers whose bounds are equal
                least=spec.trainer.min_instance if role == TRAINER else None,
            )
        )
        first += count
    return tuple(tasks)


def _replica(
    spec: TrainingJobSpec, identity: JobIdentity, role: str, template: Manifest, first: int, rank: int
) -> ReplicaPlan:
    name = pod_name(identity.name, role, rank)
    return ReplicaPlan(
        key=Rank(role, rank),
        global_rank=first + rank,
        pod_name=name,
        hostname=name,
        subdomain=identity.name,
        template=template,
        labels=_labels(spec, role, rank, identity),
    )


def _scheduler(spec: TrainingJobSpec, role: str, site: Site) -> tuple[str | None, str | None]:
    # As upstream, the annotation does not apply to the master.
    own = spec.annotations.scheduler if role != MASTER else ""
    return scheduler_here(own or spec.scheduler_name, site)


def _labels(spec: TrainingJobSpec, role: str, rank: int, identity: JobIdentity) -> Mapping[str, str]:
    """Return upstream's labels. Upstream adds the index label to running pods; here pods have it from the start."""
    found = {_JOB_LABELS[role]: identity.name}
    if spec.annotations.priority:
        found[PRIORITY] = spec.annotations.priority
    # With frame_work, only jobs of type multi have pservers. Upstream gives an index to these and not to others.
    indexed = role == TRAINER or (role == PSERVER and spec.frame_work is not None)
    if indexed:
        found[index_label(identity.namespace, identity.name, role)] = str(rank)
    return found


def _restart(role: str, site: Site) -> RestartPlan:
    """Return the restart plan of a role. As in upstream, a job fails at the n-th exit of a pserver: n - 1 restarts."""
    if role == TRAINER:
        return RestartPlan(policy=RestartPolicy.NEVER, limit=0)
    limit = max(site.pserver_restart_limit - 1, 0) if role == PSERVER else None
    return RestartPlan(policy=RestartPolicy.ALWAYS, limit=limit)


def _rules(spec: TrainingJobSpec, wanted: Mapping[str, int]) -> tuple[FinishRule, ...]:
    """Return the finish rules. Those of the trainers come before that of the pservers, which only serve the trainers.

    The two rules of the trainers never hold at once. In a fault tolerant job, the trainers that have not failed decide;
    upstream waits for the failed ones without end.
    """
    tolerant = spec.fault_tolerant
    trainers = _ranks(TRAINER, wanted)
    rules = [
        FinishRule(
            name=TRAINERS_FAILED,
            outcome=RuleOutcome.FAILURE,
            quantifier=Quantifier.ALL if tolerant else Quantifier.ANY,
            ranks=trainers,
        ),
        FinishRule(
            name=TRAINERS_DONE,
            outcome=RuleOutcome.SUCCESS,
            quantifier=Quantifier.REST if tolerant else Quantifier.ALL,
            ranks=trainers,
        ),
    ]
    if PSERVER in wanted:
        rules.append(
            FinishRule(
                name=PSERVER_RESTART_LIMIT,
                outcome=RuleOutcome.END,
                quantifier=Quantifier.ANY,
                ranks=_ranks(PSERVER, wanted),
            )
        )
    return tuple(rules)


def _ranks(role: str, wanted: Mapping[str, int]) -> Ranks:
    return Ranks({role: range(wanted[role])})


def _hosts(wanted: Mapping[str, int], identity: JobIdentity) -> HostsPlan:
    hosts = {
        role: tuple(host_name(identity.name, identity.namespace, role, rank) for rank in range(count))
        for role, count in wanted.items()
    }
    return HostsPlan(name=hosts_name(identity.name), hosts=hosts)
