"""Pods that differ in one field from a pod of the restricted level, with the controls that each of them violates.

Unit tests compare jobgate with this table. On a real control plane, a test compares the table with Pod Security
admission.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

RESTRICTED_POD: Final[Mapping[str, Any]] = {
    "metadata": {},
    "spec": {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [],
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    },
}
MISSING: Final = object()
_MAIN: Final = "/spec/containers/0"
_CONTEXT: Final = f"{_MAIN}/securityContext"
_POD_CONTEXT: Final = "/spec/securityContext"
_INIT: Final = {
    "name": "init",
    "image": "busybox",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodCase:
    """Fields of a pod, and the control that they violate at each level; an empty name if the level allows them.

    The controls are those of a cluster that runs pods with `hostUsers: false` in a user namespace of their own.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    baseline: str = ""
    restricted: str | None = None

    @property
    def violates_restricted(self) -> str:
        return self.baseline if self.restricted is None else self.restricted

    def template(self) -> dict[str, Any]:
        made: dict[str, Any] = copy.deepcopy(dict(RESTRICTED_POD))
        for pointer, value in self.fields.items():
            _set(made, pointer, value)
        return made


def _set(owner: Any, pointer: str, value: Any) -> None:
    *steps, last = [step.replace("~1", "/") for step in pointer.split("/")[1:]]
    for step in steps:
        owner = owner[int(step)] if isinstance(owner, list) else owner.setdefault(step, {})
    if value is MISSING:
        owner.pop(last, None)
    else:
        owner[last] = copy.deepcopy(value)


def _case(pointer: str, value: Any, baseline: str = "", restricted: str | None = None, **more: Any) -> PodCase:
    return PodCase(fields={pointer: value, **more}, baseline=baseline, restricted=restricted)


def _true(pointer: str, baseline: str = "", restricted: str | None = None) -> PodCase:
    return PodCase(fields={pointer: True}, baseline=baseline, restricted=restricted)


def _false(pointer: str) -> PodCase:
    return PodCase(fields={pointer: False})


def _volume(source: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "v", **source}]


def _probe(name: str, action: Mapping[str, Any]) -> PodCase:
    return _case(f"{_MAIN}/{name}", action, "HostProbes")


_WITH_HOST: Final = {"httpGet": {"host": "10.0.0.1", "port": 80}}
CASES: Final[Mapping[str, PodCase]] = {
    "as restricted": PodCase(),
    # Host Namespaces
    "host network": _true("/spec/hostNetwork", "HostNetwork"),
    "no host network": _false("/spec/hostNetwork"),
    "host PID": _true("/spec/hostPID", "HostPID"),
    "host IPC": _true("/spec/hostIPC", "HostIPC"),
    # HostProcess
    "host process of a container": PodCase(
        fields={
            f"{_CONTEXT}/windowsOptions": {"hostProcess": True},
            f"{_POD_CONTEXT}/windowsOptions": {"hostProcess": True},
            "/spec/hostNetwork": True,
        },
        baseline="HostProcess HostNetwork",
    ),
    "no host process": _case(f"{_CONTEXT}/windowsOptions", {"hostProcess": False}),
    # Privileged Containers
    "privileged": PodCase(
        fields={f"{_CONTEXT}/privileged": True, f"{_CONTEXT}/allowPrivilegeEscalation": MISSING},
        baseline="PrivilegedContainers",
        restricted="PrivilegedContainers PrivilegeEscalation",
    ),
    "privileged init container": _case(
        "/spec/initContainers",
        [{**_INIT, "securityContext": {"privileged": True, "capabilities": {"drop": ["ALL"]}}}],
        "PrivilegedContainers",
        "PrivilegedContainers PrivilegeEscalation",
    ),
    # Capabilities
    **{
        f"capability {name}": _case(f"{_CONTEXT}/capabilities/add", [name], wrong, wrong or "CapabilitiesRestricted")
        for name, wrong in {
            "CHOWN": "",
            "SETPCAP": "",
            "SYS_CHROOT": "",
            "MKNOD": "",
        }.items()
    },
    **{
        f"capability {name}": _case(f"{_CONTEXT}/capabilities/add", [name], "Capabilities", "CapabilitiesRestricted")
        for name in ("SYS_ADMIN", "NET_ADMIN", "NET_RAW", "SYS_PTRACE", "IPC_LOCK", "ALL", "CAP_CHOWN", "chown")
    },
    "capability NET_BIND_SERVICE": _case(f"{_CONTEXT}/capabilities/add", ["NET_BIND_SERVICE"]),
    "nothing dropped": _case(f"{_CONTEXT}/capabilities", {}, "", "CapabilitiesRestricted"),
    "one capability dropped": _case(f"{_CONTEXT}/capabilities/drop", ["NET_RAW"], "", "CapabilitiesRestricted"),
    # HostPath Volumes, Volume Types
    "hostPath": _case("/spec/volumes", _volume({"hostPath": {"path": "/tmp"}}), "HostPathVolumes", "VolumeTypes"),
    **{
        f"volume {name}": _case("/spec/volumes", _volume({name: source}))
        for name, source in {
            "configMap": {"name": "c"},
            "downwardAPI": {},
            "emptyDir": {},
            "persistentVolumeClaim": {"claimName": "c"},
            "projected": {"sources": []},
            "secret": {"secretName": "s"},
            "csi": {"driver": "csi.example"},
            "image": {"reference": "busybox"},
        }.items()
    },
    "volume without a source": _case("/spec/volumes", [{"name": "v"}]),
    **{
        f"volume {name}": _case("/spec/volumes", _volume({name: source}), "", "VolumeTypes")
        for name, source in {
            "nfs": {"server": "s", "path": "/p"},
            "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:a", "lun": 0},
            "cephfs": {"monitors": ["m"]},
            "rbd": {"monitors": ["m"], "image": "i"},
            "fc": {"targetWWNs": ["w"], "lun": 1},
            "gitRepo": {"repository": "r"},
        }.items()
    },
    # Host Ports
    "host port": _case(f"{_MAIN}/ports", [{"containerPort": 80, "hostPort": 80}], "HostPorts"),
    "no host port": _case(f"{_MAIN}/ports", [{"containerPort": 80, "hostPort": 0}]),
    # Host Probes / Lifecycle Hooks
    "liveness probe of a host": _probe("livenessProbe", _WITH_HOST),
    "readiness probe of a host": _probe("readinessProbe", {"tcpSocket": {"host": "10.0.0.1", "port": 80}}),
    "startup probe of a host": _probe("startupProbe", _WITH_HOST),
    "probe of the loopback interface": _probe("livenessProbe", {"httpGet": {"host": "127.0.0.1", "port": 80}}),
    "preStop of a host": _case(f"{_MAIN}/lifecycle", {"preStop": _WITH_HOST}, "HostProbes"),
    "postStart of a host": _case(f"{_MAIN}/lifecycle", {"postStart": _WITH_HOST}, "HostProbes"),
    "probe without a host": _case(f"{_MAIN}/livenessProbe", {"httpGet": {"port": 80}}),
    # AppArmor
    "AppArmor unconfined pod": _case(f"{_POD_CONTEXT}/appArmorProfile", {"type": "Unconfined"}, "AppArmor"),
    "AppArmor unconfined": _case(f"{_CONTEXT}/appArmorProfile", {"type": "Unconfined"}, "AppArmor"),
    "AppArmor default": _case(f"{_CONTEXT}/appArmorProfile", {"type": "RuntimeDefault"}),
    "AppArmor local": _case(f"{_CONTEXT}/appArmorProfile", {"type": "Localhost", "localhostProfile": "p"}),
    **{
        f"AppArmor annotation {value}": _case(
            "/metadata/annotations", {"container.apparmor.security.beta.kubernetes.io/main": value}, wrong
        )
        for value, wrong in {"unconfined": "AppArmor", "runtime/default": "", "localhost/p": ""}.items()
    },
    # SELinux
    **{
        f"SELinux type {name}": _case(f"{_CONTEXT}/seLinuxOptions", {"type": name}, wrong)
        for name, wrong in {
            "container_t": "",
            "container_init_t": "",
            "container_kvm_t": "",
            "container_engine_t": "",
            "spc_t": "SELinux",
        }.items()
    },
    "SELinux type of the pod": _case(f"{_POD_CONTEXT}/seLinuxOptions", {"type": "spc_t"}, "SELinux"),
    "SELinux user": _case(f"{_CONTEXT}/seLinuxOptions", {"user": "system_u"}, "SELinux"),
    "SELinux role": _case(f"{_POD_CONTEXT}/seLinuxOptions", {"role": "system_r"}, "SELinux"),
    "SELinux level": _case(f"{_POD_CONTEXT}/seLinuxOptions", {"level": "s0:c1,c2"}),
    # /proc Mount Type
    "unmasked proc": PodCase(
        fields={f"{_CONTEXT}/procMount": "Unmasked", "/spec/hostUsers": False},
        baseline="",
        restricted="ProcMountRestricted",
    ),
    "default proc": _case(f"{_CONTEXT}/procMount", "Default"),
    # Seccomp
    "seccomp unconfined pod": _case(
        f"{_POD_CONTEXT}/seccompProfile", {"type": "Unconfined"}, "Seccomp", "SeccompRestricted"
    ),
    "seccomp unconfined": _case(f"{_CONTEXT}/seccompProfile", {"type": "Unconfined"}, "Seccomp", "SeccompRestricted"),
    "seccomp local": _case(f"{_CONTEXT}/seccompProfile", {"type": "Localhost", "localhostProfile": "p"}),
    "no seccomp": _case(f"{_POD_CONTEXT}/seccompProfile", MISSING, "", "SeccompRestricted"),
    "seccomp of the container alone": PodCase(
        fields={
            f"{_POD_CONTEXT}/seccompProfile": MISSING,
            f"{_CONTEXT}/seccompProfile": {"type": "RuntimeDefault"},
        }
    ),
    # Sysctls
    **{
        f"sysctl {name}": _case(f"{_POD_CONTEXT}/sysctls", [{"name": name, "value": "1"}], wrong)
        for name, wrong in {
            "kernel.shm_rmid_forced": "",
            "net.ipv4.ip_local_port_range": "",
            "net.ipv4.ip_local_reserved_ports": "",
            "net.ipv4.ip_unprivileged_port_start": "",
            "net.ipv4.ping_group_range": "",
            "net.ipv4.tcp_fin_timeout": "",
            "net.ipv4.tcp_keepalive_intvl": "",
            "net.ipv4.tcp_keepalive_probes": "",
            "net.ipv4.tcp_keepalive_time": "",
            "net.ipv4.tcp_rmem": "",
            "net.ipv4.tcp_wmem": "",
            "net.ipv4.tcp_syncookies": "",
            "net.ipv4.tcp_syncookies.x": "Sysctls",
            "net/ipv4/tcp_syncookies": "Sysctls",
            "kernel.msgmax": "Sysctls",
            "net.core.somaxconn": "Sysctls",
            "fs.mqueue.msg_max": "Sysctls",
        }.items()
    },
    # Privilege Escalation
    "escalation allowed": _true(f"{_CONTEXT}/allowPrivilegeEscalation", "", "PrivilegeEscalation"),
    "escalation unset": _case(f"{_CONTEXT}/allowPrivilegeEscalation", MISSING, "", "PrivilegeEscalation"),
    "escalation of an init container": _case(
        "/spec/initContainers",
        [{**_INIT, "securityContext": {"capabilities": {"drop": ["ALL"]}}}],
        "",
        "PrivilegeEscalation",
    ),
    # Running as Non-root
    "root allowed": PodCase(fields={f"{_POD_CONTEXT}/runAsNonRoot": False}, restricted="RunAsNonRoot"),
    "root unset": _case(f"{_POD_CONTEXT}/runAsNonRoot", MISSING, "", "RunAsNonRoot"),
    "root of a container": PodCase(fields={f"{_CONTEXT}/runAsNonRoot": False}, restricted="RunAsNonRoot"),
    "non-root by the container alone": PodCase(
        fields={f"{_POD_CONTEXT}/runAsNonRoot": MISSING, f"{_CONTEXT}/runAsNonRoot": True}
    ),
    "root allowed by the pod and not by the container": PodCase(
        fields={f"{_POD_CONTEXT}/runAsNonRoot": False, f"{_CONTEXT}/runAsNonRoot": True}, restricted="RunAsNonRoot"
    ),
    "user 0": PodCase(fields={f"{_POD_CONTEXT}/runAsUser": 0}, restricted="RunAsUser"),
    "user 0 of a container": _case(f"{_CONTEXT}/runAsUser", 0, "", "RunAsUser"),
    "user 1000": _case(f"{_POD_CONTEXT}/runAsUser", 1000),
    "root in a user namespace": PodCase(
        fields={
            "/spec/hostUsers": False,
            f"{_POD_CONTEXT}/runAsNonRoot": MISSING,
            f"{_POD_CONTEXT}/runAsUser": 0,
        },
    ),
    "root allowed in a user namespace": PodCase(
        fields={"/spec/hostUsers": False, f"{_POD_CONTEXT}/runAsNonRoot": False, f"{_CONTEXT}/runAsUser": 0}
    ),
    "unconfined in a user namespace": PodCase(
        fields={"/spec/hostUsers": False, f"{_POD_CONTEXT}/seccompProfile": {"type": "Unconfined"}},
        baseline="Seccomp",
        restricted="SeccompRestricted",
    ),
    "escalation in a user namespace": PodCase(
        fields={"/spec/hostUsers": False, f"{_CONTEXT}/allowPrivilegeEscalation": True},
        restricted="PrivilegeEscalation",
    ),
    # Windows
    "Windows": PodCase(
        fields={
            "/spec/os": {"name": "windows"},
            f"{_POD_CONTEXT}/seccompProfile": MISSING,
            _CONTEXT: {},
        }
    ),
}
# Cases that violate other controls, at (baseline, restricted), if the policy does not rely on `hostUsers: false`.
WITHOUT_USER_NAMESPACES: Final[Mapping[str, tuple[str, str]]] = {
    "unmasked proc": ("ProcMount", "ProcMountRestricted"),
    "root in a user namespace": ("", "RunAsNonRoot RunAsUser"),
    "root allowed in a user namespace": ("", "RunAsNonRoot RunAsUser"),
}
