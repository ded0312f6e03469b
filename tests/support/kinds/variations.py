"""Small accepted manifests of every kind, with variations that affect how a job runs and ends."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.domain.kinds.job_kind import JobKind, Limits
from app.domain.kinds.registry import JOB_KINDS, find
from app.domain.kubernetes import labels
from app.domain.plan import Manifest
from tests.support.plans import GIVEN


def _template(*containers: str) -> Manifest:
    return {"spec": {"containers": [{"name": name, "image": "i", "command": ["true"]} for name in containers]}}


def _training_job(least: int = 2, most: int = 2, **spec: Any) -> Manifest:
    resources = {"requests": {"cpu": "1"}}
    trainer = {"min-instance": least, "max-instance": most, "resources": resources}
    return {"kind": "TrainingJob", "apiVersion": "paddlepaddle.org/v1alpha1", "spec": {"trainer": trainer, **spec}}


def _mx_job(mode: str, **roles: int) -> Manifest:
    replicas = [
        {"mxReplicaType": role.upper(), "replicas": count, "template": _template("mxnet", "logger")}
        for role, count in roles.items()
    ]
    spec = {"jobMode": mode, "replicaSpecs": replicas}
    return {"kind": "MxJob", "apiVersion": "mxnet.mlkube.io/v1beta1", "spec": spec}


def _di_job(tasks: Mapping[str, int], **spec: Any) -> Manifest:
    known = {"learner", "collector", "evaluator"}
    listed = [
        {
            "name": name,
            "type": name if name in known else "none",
            "replicas": count,
            "template": _template("di-container", "sidecar"),
        }
        for name, count in tasks.items()
    ]
    return {"kind": "DIJob", "apiVersion": "diengine.opendilab.org/v2alpha1", "spec": {"tasks": listed, **spec}}


def _generic_job(tasks: Mapping[str, int], restart: Mapping[str, Any] | None = None, **spec: Any) -> Manifest:
    replicas = [
        {"type": task, "replicas": count, "restartPolicy": dict(restart or {}), "template": _template("main")}
        for task, count in tasks.items()
    ]
    spec = {"replicaSpecs": replicas, **spec}
    return {"kind": "GenericJob", "apiVersion": "batch.tensorstack.dev/v1beta1", "spec": spec}


_PSERVER: Final = {"min-instance": 1, "entrypoint": "serve"}
_POSTED: Final[Mapping[str, Manifest]] = {
    "TrainingJob plain": _training_job(local_job=True),
    "TrainingJob plain with pserver": _training_job(pserver=_PSERVER),
    "TrainingJob fault tolerant": _training_job(1, 1, fault_tolerant=True, local_job=True),
    "TrainingJob elastic": _training_job(1, 3, fault_tolerant=True, local_job=True),
    "TrainingJob elastic with pserver": _training_job(1, 3, fault_tolerant=True, pserver=_PSERVER),
    "TrainingJob with walltime": _training_job(1, 2, fault_tolerant=True, annotations={"walltime": "400"}),
    "MxJob local": _mx_job("local", worker=1),
    "MxJob dist": _mx_job("dist", scheduler=1, server=1, worker=2),
    "DIJob without restarts": _di_job({"learner": 1, "collector": 2}, backoffLimit=0, cleanPodPolicy="None"),
    "DIJob with two": _di_job({"learner": 1, "collector": 1}, backoffLimit=2, maxReplicas=5),
    "DIJob without limit": _di_job({"collector": 2, "league": 1}, backoffLimit=None, cleanPodPolicy="All"),
    "DIJob of one task": _di_job({"serial": 2}, minReplicas=2, maxReplicas=4),
    "GenericJob": _generic_job({"worker": 2}),
    "GenericJob with rules": _generic_job(
        {"ps": 1, "worker": 2},
        {"policy": "OnFailure", "limit": 1},
        successRules=[{"worker": [0, 1]}],
        failureRules=[{"worker": [0]}, {"ps": [0]}],
        cleanUpPolicy="Unfinished",
    ),
    "GenericJob that restarts always": _generic_job(
        {"worker": 2}, {"policy": "Always", "limit": 2}, successRules=[{"worker": [0]}], cleanUpPolicy="All"
    ),
    "GenericJob paused": _generic_job(
        {"worker": 2}, runMode={"pause": {"enabled": True, "resumeSpecs": [{"type": "worker", "args": ["again"]}]}}
    ),
}
ANNOTATIONS: Final[Sequence[Mapping[str, str]]] = (
    {},
    {},
    {},
    {labels.ACTIVE_DEADLINE_SECONDS: "500"},
    {labels.PENDING_DEADLINE_SECONDS: "300"},
    {labels.TTL_SECONDS_AFTER_FINISHED: "60"},
)
JOBS: Final = tuple(_POSTED)
KINDS: Final = frozenset(kind.name for kind in JOB_KINDS.values())


def kind_of(manifest: Manifest) -> JobKind[Any]:
    return find(manifest["apiVersion"], manifest["kind"])


def accepted(job: str, annotations: Mapping[str, str] | None = None) -> Manifest:
    posted = {**_POSTED[job], "metadata": {"name": "job", "annotations": dict(annotations or {})}}
    return kind_of(posted).accept(posted, Limits(), GIVEN).manifest
