"""Makes the pod template of each role, and maps each part of it to the field of the spec that it comes from."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.domain.errors import pointer_to
from app.domain.kinds.training_job.elasticity import need_gpu, trainer_count
from app.domain.kinds.training_job.spec import RoleSpec, TrainingJobSpec, WorkerSpec
from app.domain.plan import Manifest

MASTER: Final = "master"
PSERVER: Final = "pserver"
TRAINER: Final = "trainer"
HOSTS_VOLUME: Final = "jobgate-hosts"
HOSTS_PATH: Final = "/etc/jobgate/hosts"
HOSTS_VARIABLE: Final = "JOBGATE_HOSTS_FILE"
GROUP_ANNOTATION: Final = "scheduling.k8s.io/group-name"
PRIORITY: Final = "priority"

_ETCD_IMAGE: Final = "m3ngyang/etcd:v3.2.1"
_ETCD_COMMAND: Final = (
    "etcd -name etcd0"
    " -advertise-client-urls http://$(POD_IP):2379,http://$(POD_IP):4001"
    " -listen-client-urls http://0.0.0.0:2379,http://0.0.0.0:4001"
    " -initial-advertise-peer-urls http://$(POD_IP):2380"
    " -listen-peer-urls http://0.0.0.0:2380"
    " -initial-cluster etcd0=http://$(POD_IP):2380"
    " -initial-cluster-state new"
)
# Fixed, as upstream: the manifest's resources of the master have no effect.
_MASTER_RESOURCES: Final = {
    "limits": {"cpu": "2", "memory": "1Gi"},
    "requests": {"cpu": "1", "memory": "500Mi"},
}
# Fixed too, because no field of the spec sets them, and a quota refuses a container without them. etcd needs 100 MB for
# the progress of a training.
_ETCD_RESOURCES: Final = {
    "limits": {"cpu": "1", "memory": "512Mi"},
    "requests": {"cpu": "100m", "memory": "128Mi"},
}
_QUOTES: Final = frozenset("'\"")
_FIRST: Final = "/spec/containers/0"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTemplate:
    """A pod template. `origins` maps pointers into the template to pointers to the fields of the spec."""

    template: Manifest
    origins: Mapping[str, str]

    def origin(self, pointer: str, role: str) -> str:
        """Return the pointer to the field of the spec for a pointer into the template, or that of the role."""
        inside = pointer
        while inside:
            if inside in self.origins:
                return self.origins[inside] + pointer[len(inside) :]
            inside = inside.rpartition("/")[0]
        return pointer_to("/spec", role)


def role_template(
    spec: TrainingJobSpec, role: str, job: str, *, scheduler: str | None = None, hosts: str | None = None
) -> RoleTemplate:
    """Return the pod template of a role.

    `scheduler` is a name in this cluster, `hosts` the ConfigMap of the host list.
    """
    part: RoleSpec = getattr(spec, role)
    base = pointer_to("/spec", role)
    env: list[Manifest] = [] if role == MASTER else common_env(spec, job)
    if hosts:
        env = [*env, {"name": HOSTS_VARIABLE, "value": f"{HOSTS_PATH}/hosts.json"}]
    container, origins = _container(spec, part, role, base, env)
    if hosts:
        # A directory, since the kubelet does not update a single file that is mounted with subPath.
        mount = {"name": HOSTS_VOLUME, "mountPath": HOSTS_PATH, "readOnly": True}
        container["volumeMounts"] = [*container.get("volumeMounts", []), mount]
    pod: Manifest = {"containers": [container], "restartPolicy": "Never"}
    if role == MASTER:
        # The kubelet restarts a container of the master that fails, while the other one goes on.
        pod["containers"].append(_etcd(spec, job))
        pod["restartPolicy"] = "Always"
    _place(pod, origins, spec, part, base)
    if hosts:
        pod["volumes"] = [*spec.volumes, {"name": HOSTS_VOLUME, "configMap": {"name": hosts}}]
    if scheduler:
        pod["schedulerName"] = scheduler
    return RoleTemplate(template={"metadata": {"annotations": _annotations(spec, role)}, "spec": pod}, origins=origins)


def roles_of(spec: TrainingJobSpec) -> tuple[str, ...]:
    """Return the roles whose templates are checked. Only a fault tolerant job has a master."""
    return (MASTER, PSERVER, TRAINER) if spec.fault_tolerant else (PSERVER, TRAINER)


def command_of(entrypoint: str, default: Sequence[str]) -> list[str]:
    """Split an entrypoint into a command: at each space as upstream does, or like a shell if it has quotes.

    Spaces around the entrypoint are dropped. Upstream makes empty arguments of them, which would be an empty command.
    """
    entrypoint = entrypoint.strip()
    if not entrypoint:
        return list(default)
    if not _QUOTES.isdisjoint(entrypoint):
        try:
            return shlex.split(entrypoint)
        except ValueError:
            pass  # an unpaired quote is an ordinary character
    return entrypoint.split(" ")


def common_env(spec: TrainingJobSpec, job: str) -> list[Manifest]:
    """Return upstream's variables.

    Numbers of replicas are those of the spec and do not change when a job is resized.
    """
    trainers, entry = str(spec.trainer.min_instance), spec.trainer.entrypoint
    values = {
        "PADDLE_JOB_NAME": job,
        "TRAINERS": trainers,
        "PSERVERS": str(spec.pserver.min_instance),
        "ENTRY": entry,
        "TOPOLOGY": entry,
        "TRAINER_PACKAGE": spec.trainer.workspace,
        "PADDLE_INIT_PORT": str(spec.port),
        "PADDLE_INIT_TRAINER_COUNT": str(trainer_count(spec)),
        "PADDLE_INIT_PORTS_NUM": str(spec.ports_num),
        "PADDLE_INIT_PORTS_NUM_FOR_SPARSE": str(spec.ports_num_for_sparse),
        "PADDLE_INIT_NUM_GRADIENT_SERVERS": trainers,
        "PADDLE_INIT_NUM_PASSES": str(spec.passes),
        "PADDLE_INIT_USE_GPU": "1" if need_gpu(spec) else "0",
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
    }
    fields = {"NAMESPACE": "metadata.namespace", "POD_IP": "status.podIP", "POD_NAME": "metadata.name"}
    return [
        *({"name": name, "value": value} for name, value in values.items()),
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
    ]


def ports_of(spec: TrainingJobSpec, role: str) -> range:
    """Return the ports of a role's container, which may be empty."""
    served = range(spec.port, spec.port + spec.ports_num + spec.ports_num_for_sparse)
    own = range(spec.trainer_port, spec.trainer_port + spec.trainer_ports_num)
    nothing = range(0)
    framework = spec.frame_work
    if framework is None:
        return served if role == (TRAINER if spec.is_nccl else PSERVER) else nothing
    if framework.type == "multi":
        trains_with_ports = role == TRAINER and framework.name == "tensorflow"
        return served if role == PSERVER else own if trains_with_ports else nothing
    return own if framework.type == "nccl2" and role == TRAINER else nothing


def _container(
    spec: TrainingJobSpec, part: RoleSpec, role: str, base: str, env: list[Manifest]
) -> tuple[Manifest, dict[str, str]]:
    container: Manifest = {"name": role, "image": spec.image, "imagePullPolicy": "Always"}
    origins = {f"{_FIRST}/image": "/spec/image", f"{_FIRST}/lifecycle/preStop/exec/command": f"{base}/pre_stop_cmd"}
    if isinstance(part, WorkerSpec):
        new = "new_" if spec.fault_tolerant else ""
        container["command"] = command_of(part.entrypoint, ["paddle_k8s", f"start_{new}{role}"])
        container["ports"] = _ports(ports_of(spec, role))
        container["resources"] = part.resources
        own = set(part.envs)
        env = [variable for variable in env if variable["name"] not in own]
        for index, name in enumerate(sorted(own), start=len(env)):
            for half in ("", "/name", "/value"):
                origins[f"{_FIRST}/env/{index}{half}"] = pointer_to(base, "envs", name)
        env = [*env, *({"name": name, "value": part.envs[name]} for name in sorted(own))]
        origins |= {f"{_FIRST}/command": f"{base}/entrypoint", f"{_FIRST}/resources": f"{base}/resources"}
    else:
        container["command"] = ["paddle_k8s", "start_master"]
        container["ports"] = [
            {"name": "master-port", "containerPort": 8080},
            {"name": "etcd-port", "containerPort": 2379},
        ]
        container["resources"] = _MASTER_RESOURCES
    container["env"] = env
    if role != PSERVER:
        container["volumeMounts"] = spec.volume_mounts
        origins[f"{_FIRST}/volumeMounts"] = "/spec/VolumeMounts"
    for name, probe in (("liveness", part.liveness_probe), ("readiness", part.readiness_probe)):
        origins[f"{_FIRST}/{name}Probe"] = f"{base}/{name}_probe"
        container[f"{name}Probe"] = probe
    if part.grace_period_seconds is not None and part.pre_stop_cmd:
        container["lifecycle"] = {"preStop": {"exec": {"command": part.pre_stop_cmd}}}
    return {name: value for name, value in container.items() if value}, origins


def _place(pod: Manifest, origins: dict[str, str], spec: TrainingJobSpec, part: RoleSpec, base: str) -> None:
    """Set the fields of the pod spec that concern the pod as a whole.

    A pod on the host network uses the DNS of the cluster, which the names of the host list need, only with the policy
    ClusterFirstWithHostNet.
    """
    secrets, at = spec.trainer.image_pull_secrets, "/spec/trainer/imagePullSecrets"
    if isinstance(part, WorkerSpec) and part.image_pull_secrets:
        secrets, at = part.image_pull_secrets, f"{base}/imagePullSecrets"
    fields: list[tuple[str, Any, str]] = [
        ("volumes", spec.volumes, "/spec/volumes"),
        ("imagePullSecrets", secrets, at),
        ("tolerations", part.tolerations, f"{base}/tolerations"),
        ("nodeSelector", part.node_selector, f"{base}/node_selector"),
        ("terminationGracePeriodSeconds", part.grace_period_seconds, f"{base}/grace_period_seconds"),
        ("hostNetwork", spec.host_network, "/spec/host_network"),
        ("dnsPolicy", "ClusterFirstWithHostNet" if spec.host_network else None, "/spec/host_network"),
    ]
    for name, value, origin in fields:
        origins[f"/spec/{name}"] = origin
        # A grace period of 0 is a value, while False, None and empty lists are absent fields. False == 0 in Python.
        if value or (value == 0 and value is not False):
            pod[name] = value


def _annotations(spec: TrainingJobSpec, role: str) -> dict[str, str]:
    found = {GROUP_ANNOTATION: spec.pod_group_name} if spec.pod_group_name else {}
    if role == TRAINER and spec.annotations.priority:
        found[PRIORITY] = spec.annotations.priority
    return found


def _ports(numbers: range) -> list[Manifest]:
    return [{"name": f"jobport-{number}", "containerPort": number} for number in numbers]


def _etcd(spec: TrainingJobSpec, job: str) -> Manifest:
    """Return the etcd container, in which the master stores the progress of the training."""
    return {
        "name": "etcd",
        "image": _ETCD_IMAGE,
        "imagePullPolicy": "Always",
        "command": _ETCD_COMMAND.split(" "),
        "env": common_env(spec, job),
        "resources": _ETCD_RESOURCES,
    }
