"""The checks of the restricted level of the Pod Security Standards beyond baseline, as Kubernetes 1.36 evaluates it."""

from collections.abc import Iterator
from typing import Final

from app.domain.pod_template.reading import text
from app.domain.policy.baseline import SECCOMP_TYPES, added_capabilities
from app.domain.policy.template import Finding, PodTemplate

_VOLUME_TYPES: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
_CAPABILITIES: Final = frozenset({"NET_BIND_SERVICE"})


def volume_types(pod: PodTemplate) -> Iterator[Finding]:
    """Report volumes of other types. A volume without a source is an emptyDir."""
    for volume in pod.volumes:
        for name, source in volume.value.items():
            if name != "name" and source is not None and name not in _VOLUME_TYPES:
                accepted = "one of " + ", ".join(sorted(_VOLUME_TYPES))
                yield Finding(volume.at(name), "volumes of this type are not allowed", accepted)


def privilege_escalation(pod: PodTemplate) -> Iterator[Finding]:
    if pod.is_windows:
        return
    for container in pod.containers:
        context = container.child("securityContext")
        if context.value.get("allowPrivilegeEscalation") is not False:
            detail = "the container must not gain more privileges than its parent process"
            yield Finding(context.at("allowPrivilegeEscalation"), detail, "false")


def run_as_non_root(pod: PodTemplate) -> Iterator[Finding]:
    if pod.has_own_users:
        return
    of_pod = pod.context
    if of_pod.value.get("runAsNonRoot") is False:
        yield Finding(of_pod.at("runAsNonRoot"), "the containers of the pod must not run as root", "true")
    for container in pod.containers:
        context = container.child("securityContext")
        own = context.value.get("runAsNonRoot")
        if own is False or (own is None and of_pod.value.get("runAsNonRoot") is None):
            yield Finding(context.at("runAsNonRoot"), "the container must not run as root", "true, here or in the pod")


def run_as_user(pod: PodTemplate) -> Iterator[Finding]:
    if pod.has_own_users:
        return
    for context in pod.contexts:
        user = context.value.get("runAsUser")
        # False == 0 in Python.
        if user == 0 and not isinstance(user, bool):
            yield Finding(context.at("runAsUser"), "the user 0 is root", "another number, or leave it out")


def seccomp(pod: PodTemplate) -> Iterator[Finding]:
    """Report containers without a seccomp profile of their own or of the pod."""
    if pod.is_windows:
        return
    accepted = "RuntimeDefault or Localhost"
    of_pod = pod.context.child("seccompProfile")
    if "type" in of_pod.value and of_pod.value["type"] not in SECCOMP_TYPES:
        yield Finding(of_pod.at("type"), "this seccomp profile is not allowed", accepted)
    for container in pod.containers:
        own = container.child("securityContext").child("seccompProfile")
        if not own.value and not of_pod.value:
            yield Finding(own.at("type"), "the container has no seccomp profile", f"{accepted}, here or in the pod")
        elif own.value and text(own.value, "type") not in SECCOMP_TYPES:
            yield Finding(own.at("type"), "this seccomp profile is not allowed", accepted)


def capabilities(pod: PodTemplate) -> Iterator[Finding]:
    if pod.is_windows:
        return
    for container in pod.containers:
        place = container.child("securityContext").child("capabilities")
        dropped = place.value.get("drop")
        if not isinstance(dropped, list) or "ALL" not in dropped:
            yield Finding(place.at("drop"), "the container must drop all capabilities", '["ALL"]')
    yield from added_capabilities(pod, _CAPABILITIES)
