"""The baseline level of the Pod Security Standards, as Kubernetes 1.36 evaluates it."""

from collections.abc import Iterator
from typing import Final

from app.domain.decoding import JsonValue
from app.domain.errors import pointer_to, shorten
from app.domain.pod_template.reading import text
from app.domain.policy.template import ANNOTATIONS, Check, Finding, PodTemplate, TemplateObject

LEAVE_OUT: Final = "false, or leave it out"
# Docker's default without NET_RAW, with which a container could forge packets.
CAPABILITIES: Final = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
SECCOMP_TYPES: Final = frozenset({"RuntimeDefault", "Localhost"})
_APPARMOR_TYPES: Final = frozenset({"RuntimeDefault", "Localhost"})
_APPARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
# The empty type is an absent one.
_SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
# These are namespaced: a pod that sets them changes nothing for other pods of the node.
_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("postStart", "preStop")
_HANDLERS: Final = frozenset({*_PROBES, "lifecycle"})
_WITH_HOST: Final = ("httpGet", "tcpSocket")


def host_process(pod: PodTemplate) -> Iterator[Finding]:
    for context in pod.contexts:
        options = context.child("windowsOptions")
        if options.value.get("hostProcess") is True:
            yield Finding(options.at("hostProcess"), "a HostProcess container runs on the node itself", LEAVE_OUT)


def host_namespace(field: str, what: str) -> Check:
    """Return a check that reports a pod which shares this namespace of the node."""

    def check(pod: PodTemplate) -> Iterator[Finding]:
        if pod.spec.value.get(field) is True:
            yield Finding(pod.spec.at(field), f"the pod would share the {what} of the node", LEAVE_OUT)

    return check


def privileged(pod: PodTemplate) -> Iterator[Finding]:
    for context in pod.container_contexts:
        if context.value.get("privileged") is True:
            yield Finding(context.at("privileged"), "a privileged container has all rights on the node", LEAVE_OUT)


def capabilities(pod: PodTemplate) -> Iterator[Finding]:
    return added_capabilities(pod, CAPABILITIES)


def added_capabilities(pod: PodTemplate, allowed: frozenset[str]) -> Iterator[Finding]:
    for context in pod.container_contexts:
        place = context.child("capabilities")
        for index, name in enumerate(_list(place.value.get("add"))):
            if name not in allowed:
                detail = f"the capability {_show(name)} must not be added"
                yield Finding(place.at("add", index), detail, _one_of(allowed))


def host_path_volumes(pod: PodTemplate) -> Iterator[Finding]:
    for volume in pod.volumes:
        if volume.value.get("hostPath") is not None:
            detail = "a hostPath volume reads and writes the file system of the node"
            yield Finding(volume.at("hostPath"), detail, "another type of volume, for example emptyDir")


def host_ports(pod: PodTemplate) -> Iterator[Finding]:
    for container in pod.containers:
        for port in container.items("ports"):
            # For the API server, 0 is an absent port.
            if port.value.get("hostPort") not in (None, 0):
                yield Finding(port.at("hostPort"), "the port would be one of the node", "leave it out")


def host_probes(pod: PodTemplate) -> Iterator[Finding]:
    """Report probes and hooks with a host. The kubelet would connect to that host from the network of the node."""
    for container in pod.containers:
        if _HANDLERS.isdisjoint(container.value):
            continue
        lifecycle = container.child("lifecycle")
        handlers = [container.child(name) for name in _PROBES] + [lifecycle.child(name) for name in _HOOKS]
        for handler in handlers:
            for kind in _WITH_HOST:
                action = handler.child(kind)
                if text(action.value, "host"):
                    detail = "the node would connect to a host of the user's choice"
                    yield Finding(action.at("host"), detail, "leave it out: the address of the pod is used")


def app_armor(pod: PodTemplate) -> Iterator[Finding]:
    accepted = "RuntimeDefault or Localhost"
    for context in pod.contexts:
        profile = context.child("appArmorProfile")
        yield from _wrong_type(profile, _APPARMOR_TYPES, "AppArmor profile", accepted)
    for key, value in pod.annotations.items():
        if key.startswith(_APPARMOR_ANNOTATION) and not _is_app_armor_profile(value):
            detail = f"the AppArmor profile {_show(value)} is not allowed"
            yield Finding(pointer_to(ANNOTATIONS, key), detail, "runtime/default or localhost/<profile>")


def se_linux(pod: PodTemplate) -> Iterator[Finding]:
    for context in pod.contexts:
        options = context.child("seLinuxOptions")
        if text(options.value, "type") not in _SELINUX_TYPES:
            detail = f"the SELinux type {_show(options.value['type'])} is not allowed"
            yield Finding(options.at("type"), detail, _one_of(_SELINUX_TYPES - {""}))
        for field in ("user", "role"):
            if text(options.value, field):
                yield Finding(options.at(field), f"the SELinux {field} must not be set", "leave it out")


def seccomp(pod: PodTemplate) -> Iterator[Finding]:
    for context in pod.contexts:
        profile = context.child("seccompProfile")
        yield from _wrong_type(profile, SECCOMP_TYPES, "seccomp profile", _one_of(SECCOMP_TYPES))


def sysctls(pod: PodTemplate) -> Iterator[Finding]:
    for sysctl in pod.context.items("sysctls"):
        name = text(sysctl.value, "name")
        if name not in _SYSCTLS:
            detail = f"the sysctl {shorten(name)} can affect other pods of the node"
            yield Finding(sysctl.at("name"), detail, _one_of(_SYSCTLS))


def proc_mount(pod: PodTemplate) -> Iterator[Finding]:
    """Report an unmasked /proc, unless the pod has a user namespace, in which /proc shows nothing of the node."""
    return iter(()) if pod.has_own_users else masked_proc(pod)


def masked_proc(pod: PodTemplate) -> Iterator[Finding]:
    for context in pod.container_contexts:
        if text(context.value, "procMount") not in ("", "Default"):
            yield Finding(context.at("procMount"), "parts of /proc must stay masked", "Default, or leave it out")


def _wrong_type(profile: TemplateObject, allowed: frozenset[str], what: str, accepted: str) -> Iterator[Finding]:
    if "type" in profile.value and profile.value["type"] not in allowed:
        detail = f"the {what} {_show(profile.value['type'])} is not allowed"
        yield Finding(profile.at("type"), detail, accepted)


def _is_app_armor_profile(value: JsonValue) -> bool:
    return isinstance(value, str) and (value in ("", "runtime/default") or value.startswith("localhost/"))


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _show(value: JsonValue) -> str:
    return shorten(value) if isinstance(value, str) else "that is given"


def _one_of(names: frozenset[str]) -> str:
    return "one of " + ", ".join(sorted(names))
