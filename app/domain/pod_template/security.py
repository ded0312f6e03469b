"""Rules on the security contexts of a pod and its containers, and on the fields that an operating system lacks."""

from collections.abc import Iterator
from typing import Final

from app.domain.errors import Problems, pointer_to
from app.domain.pod_template.reading import Mapping, check_distinct, items, mapping, present_fields, text

_PROFILES: Final = (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor"))
_SYSCTLS_OF_NAMESPACES: Final = {
    "hostNetwork": ("net.",),
    "hostIPC": ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."),
}
_NOT_ON_WINDOWS: Final = ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace", "resources")
_NOT_IN_WINDOWS_PODS: Final = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser"),
    *("runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"),
)
_NOT_IN_WINDOWS_CONTAINERS: Final = (
    *("appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged"),
    *("allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"),
)


def check_security(pod: Mapping, pointer: str, problems: Problems) -> None:
    """Check the security contexts of the pod and of all its containers."""
    whole, here = mapping(pod.get("securityContext")), pointer_to(pointer, "securityContext")
    contexts = [(whole, here), *_of_containers(pod, pointer)]
    for context, at in contexts:
        for field, what in _PROFILES:
            _check_profile(mapping(context.get(field)), pointer_to(at, field), what, problems)
    for context, at in contexts[1:]:
        _check_privileges(context, at, problems)
        if text(context, "procMount") == "Unmasked" and pod.get("hostUsers") is not False:
            detail = "an unmasked /proc needs a user namespace"
            problems.add(pointer_to(at, "procMount"), "Invalid", detail, "Default, or hostUsers: false in the pod")
    _check_sysctls(pod, whole, here, problems)
    _check_host_processes(pod, contexts, pointer, problems)
    match text(mapping(pod.get("os")), "name"):
        case "windows":
            _refuse(pod, _NOT_ON_WINDOWS, pointer, "windows", problems)
            _refuse(whole, _NOT_IN_WINDOWS_PODS, here, "windows", problems)
            for context, at in contexts[1:]:
                _refuse(context, _NOT_IN_WINDOWS_CONTAINERS, at, "windows", problems)
        case "linux":
            for context, at in contexts:
                _refuse(context, ("windowsOptions",), at, "linux", problems)


def _of_containers(pod: Mapping, pointer: str) -> Iterator[tuple[Mapping, str]]:
    for field in ("initContainers", "containers"):
        for container, here in items(pod, field, pointer):
            yield mapping(container.get("securityContext")), pointer_to(here, "securityContext")


def _check_profile(profile: Mapping, here: str, what: str, problems: Problems) -> None:
    local = profile.get("localhostProfile")
    pointer = pointer_to(here, "localhostProfile")
    is_local = text(profile, "type") == "Localhost"
    # The API server accepts an empty file of seccomp, and none of AppArmor.
    if is_local and (local is None or (what == "AppArmor" and local == "")):
        problems.add(pointer, "Required", f"the {what} type Localhost needs a profile", "the path of a profile")
    elif local is not None and text(profile, "type") in ("RuntimeDefault", "Unconfined"):
        problems.add(pointer, "Invalid", f"only the {what} type Localhost has a profile", "leave it out")


def _check_sysctls(pod: Mapping, context: Mapping, here: str, problems: Problems) -> None:
    check_distinct(context, "sysctls", "name", here, problems)
    for sysctl, pointer in items(context, "sysctls", here):
        name = text(sysctl, "name").replace("/", ".")
        for shared, prefixes in _SYSCTLS_OF_NAMESPACES.items():
            if pod.get(shared) is True and name.startswith(prefixes):
                detail = f"with {shared}, the parameter is that of the node"
                problems.add(pointer_to(pointer, "name"), "Invalid", detail, "leave it out")


def _check_privileges(context: Mapping, here: str, problems: Problems) -> None:
    if context.get("privileged") is True and context.get("allowPrivilegeEscalation") is False:
        pointer = pointer_to(here, "allowPrivilegeEscalation")
        problems.add(pointer, "Invalid", "a privileged container can always escalate", "true, or leave it out")


def _check_host_processes(pod: Mapping, contexts: list[tuple[Mapping, str]], pointer: str, problems: Problems) -> None:
    """A host process container of Windows runs in the network of its node, and only with others of its kind."""
    (whole, _), *others = [(mapping(context.get("windowsOptions")).get("hostProcess"), at) for context, at in contexts]
    for own, at in others:
        if None not in (own, whole) and own is not whole:
            detail = "the value must be that of the pod"
            problems.add(
                pointer_to(at, "windowsOptions", "hostProcess"), "Invalid", detail, "the same, or leave it out"
            )
    used = {bool(whole if own is None else own) for own, _ in others}
    if used == {True, False}:
        detail = "a pod with a host process container has no other containers"
        problems.add(pointer, "Invalid", detail, "hostProcess: true for all containers or for none")
    if (True in used or whole is True) and pod.get("hostNetwork") is not True:
        here = pointer_to(pointer, "hostNetwork")
        problems.add(here, "Required", "host process containers run in the host network", "true")


def _refuse(owner: Mapping, fields: tuple[str, ...], here: str, system: str, problems: Problems) -> None:
    for name in present_fields(owner, fields):
        detail = f"a pod of the operating system {system} has no {name}"
        problems.add(pointer_to(here, name), "NotSupported", detail, "leave it out")
