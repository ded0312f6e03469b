"""The table of controls. Names follow the Pod Security Standards, and are error codes and values of settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from app.domain.policy import baseline, own, restricted
from app.domain.policy.keys import ANNOTATIONS_CONTROL, LABELS_CONTROL
from app.domain.policy.template import Check


class Level(StrEnum):
    """A level of the Pod Security Standards. Each level includes the controls of the level before it."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A control. `title` is its name in the Pod Security Standards. At its level it replaces the control `replaces`."""

    name: str
    title: str
    check: Check
    level: Level
    replaces: str = ""


def _by_name(*controls: Control) -> Mapping[str, Control]:
    return MappingProxyType({control.name: control for control in controls})


def _baseline(name: str, title: str, check: Check) -> Control:
    return Control(name=name, title=title, check=check, level=Level.BASELINE)


def _restricted_control(name: str, title: str, check: Check, replaces: str = "") -> Control:
    return Control(name=name, title=title, check=check, level=Level.RESTRICTED, replaces=replaces)


CONTROLS: Final = _by_name(
    _baseline("HostProcess", "HostProcess", baseline.host_process),
    _baseline("HostNetwork", "Host Namespaces", baseline.host_namespace("hostNetwork", "network")),
    _baseline("HostPID", "Host Namespaces", baseline.host_namespace("hostPID", "processes")),
    _baseline("HostIPC", "Host Namespaces", baseline.host_namespace("hostIPC", "interprocess communication")),
    _baseline("PrivilegedContainers", "Privileged Containers", baseline.privileged),
    _baseline("Capabilities", "Capabilities", baseline.capabilities),
    _baseline("HostPathVolumes", "HostPath Volumes", baseline.host_path_volumes),
    _baseline("HostPorts", "Host Ports", baseline.host_ports),
    _baseline("HostProbes", "Host Probes / Lifecycle Hooks", baseline.host_probes),
    _baseline("AppArmor", "AppArmor", baseline.app_armor),
    _baseline("SELinux", "SELinux", baseline.se_linux),
    _baseline("ProcMount", "/proc Mount Type", baseline.proc_mount),
    _baseline("Seccomp", "Seccomp", baseline.seccomp),
    _baseline("Sysctls", "Sysctls", baseline.sysctls),
    _restricted_control("ProcMountRestricted", "/proc Mount Type", baseline.masked_proc, replaces="ProcMount"),
    _restricted_control("VolumeTypes", "Volume Types", restricted.volume_types, replaces="HostPathVolumes"),
    _restricted_control("PrivilegeEscalation", "Privilege Escalation", restricted.privilege_escalation),
    _restricted_control("RunAsNonRoot", "Running as Non-root", restricted.run_as_non_root),
    _restricted_control("RunAsUser", "Running as Non-root user", restricted.run_as_user),
    _restricted_control("SeccompRestricted", "Seccomp", restricted.seccomp, replaces="Seccomp"),
    _restricted_control("CapabilitiesRestricted", "Capabilities", restricted.capabilities, replaces="Capabilities"),
)
# Enforced at every level. The checks of these depend on settings, so PodPolicy adds them.
SERVICE_ACCOUNT: Final = "ServiceAccount"
OF_SETTINGS: Final = (ANNOTATIONS_CONTROL, LABELS_CONTROL, SERVICE_ACCOUNT)
_OWN_CHECKS: Final[Mapping[str, Check]] = MappingProxyType(
    {"NodeName": own.node_name, "PriorityClass": own.priority_class, "ForeignPods": own.foreign_pods}
)
JOBGATE_CONTROLS: Final = (*_OWN_CHECKS, *OF_SETTINGS)
NAMES: Final = frozenset({*CONTROLS, *JOBGATE_CONTROLS})


def checks_of(level: Level) -> dict[str, Check]:
    """Return the checks of a level by name, with jobgate's own except those of settings."""
    order = list(Level)
    demanded = [control for control in CONTROLS.values() if order.index(control.level) <= order.index(level)]
    replaced = {control.replaces for control in demanded}
    return {control.name: control.check for control in demanded if control.name not in replaced} | dict(_OWN_CHECKS)
