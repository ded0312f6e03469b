"""The cases, and what is refused and what is not, were compared with a Kubernetes 1.36 API server's own answers."""

import json
import time
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import pod_template
from app.domain.errors import MAX_ERRORS, FieldError, Problems
from app.domain.pod_template import validate_pod_template
from tests.support.json_values import JSON_VALUES, UNHURRIED

ABSENT = object()
ID_MAX = 2**31 - 1
SECRET = "hunter2-the-secret"
VOLUME = {"volumes": [{"name": "v", "emptyDir": {}}]}
TCP = {"tcpSocket": {"port": 80}}


def container(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in ({"name": "c", "image": "i"} | fields).items() if value is not ABSENT}


def pod(first: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [first or container()], **fields}}


def mounts(*of: dict[str, Any]) -> dict[str, Any]:
    return pod(container(volumeMounts=list(of)), **VOLUME)


def limits(amounts: dict[str, Any], requests: dict[str, Any] | None = None) -> dict[str, Any]:
    return pod(container(resources={"limits": amounts, "requests": requests}))


def env(**fields: Any) -> dict[str, Any]:
    return pod(container(env=[{"name": "A"} | fields]))


def volume(**source: Any) -> dict[str, Any]:
    return pod(volumes=[{"name": "v", **source}])


def host_port(name: str, *numbers: int, **fields: Any) -> dict[str, Any]:
    return container(name=name, ports=[{"containerPort": 80, "hostPort": one} for one in numbers], **fields)


def listening(name: str, *ports: int) -> dict[str, Any]:
    return container(name=name, ports=[{"containerPort": one} for one in ports])


def errors_of(template: Any, pointer: str = "") -> list[FieldError]:
    problems = Problems()
    validate_pod_template(template, pointer, problems)
    return list(problems.errors)


ACCEPTED = [
    pod(),
    pod(volumes=None, nodeSelector=None, tolerations=[]),
    pod(container(resources=None, imagePullPolicy="", ports=[{"containerPort": 80, "protocol": "", "hostPort": 0}])),
    pod(restartPolicy="", dnsPolicy="", schedulerName="t9k-scheduler", ephemeralContainers=[]),
    {"metadata": {"creationTimestamp": None, "labels": {"a": "b"}, "annotations": {"A/b": "c d"}}, **pod()},
    {"metadata": {"name": "mine", "generateName": "mine-"}, **pod()},
    {"metadata": {"name": "", "finalizers": [], "labels": {"app.kubernetes.io/name": "x"}}, **pod()},
    mounts({"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b", "subPath": "x/y"}),
    pod(volumes=[{"name": "v"}, {"name": "w", "emptyDir": None}]),
    env(value="b"), env(valueFrom={"fieldRef": {"fieldPath": "metadata.labels['a']"}}), env(name="1 A"),
    env(value="", valueFrom={"secretKeyRef": {"name": "s", "key": "k", "optional": True}}),
    limits({"cpu": 1, "memory": "1.5Gi", "nvidia.com/gpu": "2"}, {"cpu": "500m", "nvidia.com/gpu": 2}),
    limits({"nvidia.com/gpu": 2**63 - 1}), limits({"memory": 2**63}),
    limits({"cpu": 0.5, "hugepages-2Mi": "2Mi"}), limits({}, {"ephemeral-storage": "1e3"}),
    pod(container(livenessProbe={"exec": {"command": ["a"]}}, readinessProbe={**TCP, "successThreshold": 2})),
    pod(container(livenessProbe={"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 0})),
    pod(container(lifecycle={"preStop": {"sleep": {"seconds": 1}}}, startupProbe={"grpc": {"port": 80}})),
    pod(initContainers=[container(name="i", restartPolicy="Always", livenessProbe=TCP)]),
    pod(tolerations=[{"operator": "Exists"}, {"key": "a", "tolerationSeconds": 5, "effect": "NoExecute"}]),
    pod(terminationGracePeriodSeconds=-1),
    pod(terminationGracePeriodSeconds=0, activeDeadlineSeconds=1, hostUsers=False, os={"name": "linux"}),
    pod(securityContext={"runAsUser": 0, "fsGroup": 5, "seccompProfile": {"type": "RuntimeDefault"}}),
    pod(securityContext={"runAsUser": ID_MAX, "runAsGroup": ID_MAX, "fsGroup": ID_MAX, "supplementalGroups": [ID_MAX]}),
    # Init containers run one after another, before the others. The API server also accepts it if they run on.
    pod(host_port("c", 90), initContainers=[host_port("i", 90), host_port("j", 90)]),
    pod(host_port("c", 90), initContainers=[host_port("i", 90, restartPolicy="Always")]),
    pod(listening("c", 80), initContainers=[listening("i", 80)], hostNetwork=True),
    # Go reads a null in a list as the zero value of its type.
    pod(container(command=["sh", None], args=[None])), pod(imagePullSecrets=[None]), pod(volumes=None),
    pod(securityContext={"supplementalGroups": [None]}),
    pod(container(securityContext={"capabilities": {"drop": [None]}})),
    volume(nfs={"server": "s", "path": "/"}),
    pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a.b"]}, {"ip": "::1"}]),
]  # fmt: skip


@pytest.mark.parametrize("template", ACCEPTED)
def test_what_kubernetes_accepts_passes(template: dict[str, Any]) -> None:
    assert errors_of(template) == []


C0 = "/spec/containers/0"
REFUSED = [
    ({}, "/spec", "Required"),
    ({"spec": None}, "/spec", "Required"),
    ({"spec": {}}, "/spec/containers", "Required"),
    ({"spec": {"containers": []}}, "/spec/containers", "Required"),
    ({"spec": []}, "/spec", "Invalid"),
    ({"status": {}, **pod()}, "/status", "UnknownField"),
    (pod(hostNetwrok=True), "/spec/hostNetwrok", "UnknownField"),
    (pod(ephemeralContainers=[{"name": "e"}]), "/spec/ephemeralContainers", "NotSupported"),
    (pod(restartPolicy="Sometimes"), "/spec/restartPolicy", "NotSupported"),
    (pod(activeDeadlineSeconds=0), "/spec/activeDeadlineSeconds", "OutOfRange"),
    (pod(priority=2**31), "/spec/priority", "OutOfRange"),
    (pod(serviceAccountName="A_b"), "/spec/serviceAccountName", "Invalid"),
    (pod(hostname="a.b"), "/spec/hostname", "Invalid"),
    (pod(nodeSelector={"a": "c d"}), "/spec/nodeSelector/a", "Invalid"),
    (pod(dnsPolicy="None"), "/spec/dnsConfig/nameservers", "Required"),
    (pod(shareProcessNamespace=True, hostPID=True), "/spec/shareProcessNamespace", "Invalid"),
    (pod(readinessGates=[{"conditionType": "a b"}]), "/spec/readinessGates/0/conditionType", "Invalid"),
    (pod(os={"name": "beos"}), "/spec/os/name", "NotSupported"),
    (pod(initContainers=[container()]), f"{C0}/name", "Duplicate"),
    (pod(initContainers=[container(name="i", livenessProbe=TCP)]),
     "/spec/initContainers/0/livenessProbe", "NotSupported"),
    (pod(container(name="A")), f"{C0}/name", "Invalid"),
    (pod(container(name="")), f"{C0}/name", "Required"),
    (pod(container(name=ABSENT)), f"{C0}/name", "Required"),
    (pod(container(image=ABSENT)), f"{C0}/image", "Required"),
    (pod(container(image="")), f"{C0}/image", "Required"),
    (pod(container(imagePullPolicy="Alway")), f"{C0}/imagePullPolicy", "NotSupported"),
    (pod(container(command="sh")), f"{C0}/command", "Invalid"),
    (pod(container(command=[1])), f"{C0}/command/0", "Invalid"),
    (pod(container(tty="yes")), f"{C0}/tty", "Invalid"),
    (pod(container(ports=[{"containerPort": 0}])), f"{C0}/ports/0/containerPort", "OutOfRange"),
    (pod(container(ports=[{"containerPort": 65536}])), f"{C0}/ports/0/containerPort", "OutOfRange"),
    (pod(container(ports=[{"containerPort": "80"}])), f"{C0}/ports/0/containerPort", "Invalid"),
    (pod(container(ports=[{"containerPort": 80, "name": "UP"}])), f"{C0}/ports/0/name", "Invalid"),
    (pod(container(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}])),
     f"{C0}/ports/1/name", "Duplicate"),
    (pod(container(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}])),
     f"{C0}/ports/1/hostPort", "Duplicate"),
    (pod(container(ports=[{"containerPort": 80, "hostPort": 81}]), hostNetwork=True),
     f"{C0}/ports/0/hostPort", "Invalid"),
    (mounts({"name": "w", "mountPath": "/a"}), f"{C0}/volumeMounts/0/name", "NotFound"),
    (mounts({"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}),
     f"{C0}/volumeMounts/1/mountPath", "Duplicate"),
    (mounts({"name": "v", "mountPath": ""}), f"{C0}/volumeMounts/0/mountPath", "Required"),
    (mounts({"name": "v", "mountPath": "/a", "subPath": "../x"}), f"{C0}/volumeMounts/0/subPath", "Invalid"),
    (pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]), "/spec/volumes/0", "Invalid"),
    (pod(volumes=[{"name": "v"}, {"name": "v"}]), "/spec/volumes/1/name", "Duplicate"),
    (pod(volumes=[{"name": "v", "configMap": {}}]), "/spec/volumes/0/configMap/name", "Required"),
    (pod(volumes=[{"name": "v", "secret": {"secretName": "s", "defaultMode": 512}}]),
     "/spec/volumes/0/secret/defaultMode", "OutOfRange"),
    (pod(volumes=[{"name": "v", "secret": {"secretName": "s", "items": [{"key": "a", "path": "../b"}]}}]),
     "/spec/volumes/0/secret/items/0/path", "Invalid"),
    (env(name="A=B"), f"{C0}/env/0/name", "Invalid"),
    (env(name=""), f"{C0}/env/0/name", "Required"),
    (env(value=1), f"{C0}/env/0/value", "Invalid"),
    (env(valueFrom={}), f"{C0}/env/0/valueFrom", "Required"),
    (env(value="x", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}), f"{C0}/env/0/valueFrom", "Invalid"),
    (env(valueFrom={"fieldRef": {"fieldPath": "metadata.nam"}}),
     f"{C0}/env/0/valueFrom/fieldRef/fieldPath", "NotSupported"),
    (env(valueFrom={"secretKeyRef": {"name": "s"}}), f"{C0}/env/0/valueFrom/secretKeyRef/key", "Required"),
    (pod(container(envFrom=[{}])), f"{C0}/envFrom/0", "Required"),
    (limits({"cpu": "1"}, {"cpu": "1500m"}), f"{C0}/resources/requests/cpu", "OutOfRange"),
    (limits({"cpu": "-1"}), f"{C0}/resources/limits/cpu", "OutOfRange"),
    (limits({"cpu": "1Q"}), f"{C0}/resources/limits/cpu", "Invalid"),
    (limits({"gpu": "1"}), f"{C0}/resources/limits/gpu", "Invalid"),
    (limits({"nvidia.com/gpu": "0.5"}), f"{C0}/resources/limits/nvidia.com~1gpu", "Invalid"),
    (limits({"nvidia.com/gpu": 2**63}), f"{C0}/resources/limits/nvidia.com~1gpu", "OutOfRange"),
    (limits({}, {"nvidia.com/gpu": "1"}), f"{C0}/resources/limits/nvidia.com~1gpu", "Required"),
    (limits({"nvidia.com/gpu": 2}, {"nvidia.com/gpu": 1}), f"{C0}/resources/requests/nvidia.com~1gpu", "Invalid"),
    (limits({"hugepages-2Mi": "2Mi"}), f"{C0}/resources", "Required"),
    (pod(container(livenessProbe={})), f"{C0}/livenessProbe", "Required"),
    (pod(container(livenessProbe={"exec": {}})), f"{C0}/livenessProbe/exec/command", "Required"),
    (pod(container(livenessProbe={**TCP, "exec": {"command": ["a"]}})), f"{C0}/livenessProbe", "Invalid"),
    (pod(container(livenessProbe={"httpGet": {"path": "/"}})), f"{C0}/livenessProbe/httpGet/port", "Required"),
    (pod(container(livenessProbe={"tcpSocket": {"port": 0}})), f"{C0}/livenessProbe/tcpSocket/port", "OutOfRange"),
    (pod(container(livenessProbe={**TCP, "successThreshold": 2})), f"{C0}/livenessProbe/successThreshold", "Invalid"),
    (pod(container(lifecycle={"preStop": {}})), f"{C0}/lifecycle/preStop", "Required"),
    (pod(container(lifecycle={"preStop": {"sleep": {"seconds": 31}}})),
     f"{C0}/lifecycle/preStop/sleep/seconds", "OutOfRange"),
    (pod(hostAliases=[{"ip": "x"}]), "/spec/hostAliases/0/ip", "Invalid"),
    (pod(volumes=[{"name": "v", "emptyDir": {"sizeLimit": "-1"}}]), "/spec/volumes/0/emptyDir/sizeLimit", "OutOfRange"),
    (pod(tolerations=[{}]), "/spec/tolerations/0/operator", "Invalid"),
    (pod(tolerations=[{"key": "a", "effect": "Nope"}]), "/spec/tolerations/0/effect", "NotSupported"),
    (pod(tolerations=[{"key": "a", "tolerationSeconds": 5}]), "/spec/tolerations/0/effect", "Invalid"),
    (pod(host_port("c", 90, 90)), f"{C0}/ports/1/hostPort", "Duplicate"),
    (pod(host_port("c", 1, 1)), f"{C0}/ports/1/hostPort", "Duplicate"),
    (pod(initContainers=[host_port("i", 90, 90)]), "/spec/initContainers/0/ports/1/hostPort", "Duplicate"),
    (pod(initContainers=[host_port("i", 90, 90, restartPolicy="Always")]),
     "/spec/initContainers/0/ports/1/hostPort", "Duplicate"),
    ({"spec": {"containers": [host_port("c", 90), host_port("d", 90)]}},
     "/spec/containers/1/ports/0/hostPort", "Duplicate"),
    ({"spec": {"containers": [listening("c", 80), listening("d", 80)], "hostNetwork": True}},
     "/spec/containers/1/ports/0/hostPort", "Duplicate"),
    (pod(container(env=[None])), f"{C0}/env/0/name", "Required"),
    (pod(container(envFrom=[None])), f"{C0}/envFrom/0", "Required"),
    (pod(container(ports=[None])), f"{C0}/ports/0/containerPort", "Required"),
    (pod(volumes=[None]), "/spec/volumes/0/name", "Required"),
    (pod(tolerations=[None]), "/spec/tolerations/0/operator", "Invalid"),
    (pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": [None]}]), "/spec/hostAliases/0/hostnames/0", "Invalid"),
    (pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a", ""]}]), "/spec/hostAliases/0/hostnames/1", "Invalid"),
    (pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["A_b"]}]), "/spec/hostAliases/0/hostnames/0", "Invalid"),
    *((pod(securityContext={name: wrong}), f"/spec/securityContext/{name}", "OutOfRange")
      for name in ("runAsUser", "runAsGroup", "fsGroup") for wrong in (ID_MAX + 1, -1)),
    *((pod(container(securityContext={name: ID_MAX + 1})), f"{C0}/securityContext/{name}", "OutOfRange")
      for name in ("runAsUser", "runAsGroup")),
    *((pod(securityContext={"supplementalGroups": [1, wrong]}), "/spec/securityContext/supplementalGroups/1",
       "OutOfRange") for wrong in (ID_MAX + 1, -1)),
    (env(valueFrom={"fieldRef": {"fieldPath": ""}}), f"{C0}/env/0/valueFrom/fieldRef/fieldPath", "Required"),
    (env(valueFrom={"resourceFieldRef": {"resource": ""}}),
     f"{C0}/env/0/valueFrom/resourceFieldRef/resource", "Required"),
    (volume(downwardAPI={"items": [{"path": "a", "fieldRef": {"fieldPath": ""}}]}),
     "/spec/volumes/0/downwardAPI/items/0/fieldRef/fieldPath", "Required"),
    (volume(nfs={"server": "", "path": "/"}), "/spec/volumes/0/nfs/server", "Required"),
    (volume(nfs={"server": "s", "path": ""}), "/spec/volumes/0/nfs/path", "Required"),
    (volume(nfs={"server": "s", "path": "a"}), "/spec/volumes/0/nfs/path", "Invalid"),
    (volume(csi={"driver": ""}), "/spec/volumes/0/csi/driver", "Required"),
    (volume(iscsi={"targetPortal": "", "iqn": "iqn.2015-02.a.b:c", "lun": 0}),
     "/spec/volumes/0/iscsi/targetPortal", "Required"),
    (volume(cephfs={"monitors": []}), "/spec/volumes/0/cephfs/monitors", "Required"),
    (volume(azureFile={"secretName": "s", "shareName": ""}), "/spec/volumes/0/azureFile/shareName", "Required"),
    (volume(downwardAPI={"items": [{"path": "/a", "fieldRef": {"fieldPath": "metadata.name"}}]}),
     "/spec/volumes/0/downwardAPI/items/0/path", "Invalid"),
    (volume(quobyte={"registry": "", "volume": "v"}), "/spec/volumes/0/quobyte/registry", "Required"),
    (volume(quobyte={"registry": "a:1", "volume": "v", "tenant": "t" * 66}),
     "/spec/volumes/0/quobyte/tenant", "Invalid"),
    (pod(container(envFrom=[{"configMapRef": {}}])), f"{C0}/envFrom/0/configMapRef/name", "Required"),
    (pod(container(envFrom=[{"secretRef": {"name": ""}}])), f"{C0}/envFrom/0/secretRef/name", "Required"),
    (env(valueFrom={"configMapKeyRef": {"key": "k"}}), f"{C0}/env/0/valueFrom/configMapKeyRef/name", "Required"),
    (env(valueFrom={"secretKeyRef": {"name": "s", "key": "a b"}}),
     f"{C0}/env/0/valueFrom/secretKeyRef/key", "Invalid"),
    (pod(container(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "x"}])),
     f"{C0}/resizePolicy/0/restartPolicy", "NotSupported"),
    (pod(initContainers=[container(name="i", restartPolicy="")]),
     "/spec/initContainers/0/restartPolicy", "NotSupported"),
    *((pod(None, hostUsers=False, **{name: True}), f"/spec/{name}", "Invalid")
      for name in ("hostNetwork", "hostPID", "hostIPC")),
    (pod(securityContext={"sysctls": [{"name": "", "value": "1"}]}),
     "/spec/securityContext/sysctls/0/name", "Required"),
    (pod(dnsConfig={"options": [None]}), "/spec/dnsConfig/options/0/name", "Required"),
    (pod(dnsConfig={"nameservers": ["a"]}), "/spec/dnsConfig/nameservers/0", "Invalid"),
    (pod(dnsConfig={"nameservers": [None]}), "/spec/dnsConfig/nameservers/0", "Invalid"),
    (pod(dnsConfig={"nameservers": ["1.1.1.1"] * 4}), "/spec/dnsConfig/nameservers", "TooLong"),
    ({"metadata": {"labels": {"a b": "c"}}, **pod()}, "/metadata/labels/a b", "Invalid"),
    ({"metadata": {"labels": {"a": "c d"}}, **pod()}, "/metadata/labels/a", "Invalid"),
    ({"metadata": {"labels": {"jobgate.dev/job-uid": "x"}}, **pod()},
     "/metadata/labels/jobgate.dev~1job-uid", "Reserved"),
    ({"metadata": {"annotations": {"jobgate.dev/x": ""}}, **pod()}, "/metadata/annotations/jobgate.dev~1x", "Reserved"),
    ({"metadata": {"annotations": {"a": "c" * 300_000}}, **pod()}, "/metadata/annotations", "TooLong"),
    ({"metadata": {"namespace": "mine"}, **pod()}, "/metadata/namespace", "NotSupported"),
    ({"metadata": {"finalizers": ["a/b"]}, **pod()}, "/metadata/finalizers", "NotSupported"),
    ({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}]}, **pod()},
     "/metadata/ownerReferences", "NotSupported"),
]  # fmt: skip


def test_a_mount_of_no_volume_is_answered_with_the_first_ten_volumes() -> None:
    volumes = [{"name": f"v{number:02}", "emptyDir": {}} for number in range(11)]
    (error,) = errors_of(pod(container(volumeMounts=[{"name": "x", "mountPath": "/x"}]), volumes=volumes))
    assert error.accepted == "one of: " + ", ".join(f"v{number:02}" for number in range(10))


@pytest.mark.parametrize(("template", "pointer", "code"), REFUSED)
def test_what_kubernetes_or_jobgate_refuses(template: dict[str, Any], pointer: str, code: str) -> None:
    (error,) = errors_of(template)
    assert (error.pointer, error.code) == (pointer, code)
    assert error.detail
    assert error.accepted


@pytest.mark.parametrize(
    ("template", "pointer"),
    [
        ({"spec": {"containers": [None]}}, C0),
        ({"spec": {"containers": [container(), None]}}, "/spec/containers/1"),
        (pod(initContainers=[None]), "/spec/initContainers/0"),
    ],
)
def test_a_null_among_containers_is_a_container_without_fields(template: dict[str, Any], pointer: str) -> None:
    assert {error.pointer for error in errors_of(template)} == {f"{pointer}/name", f"{pointer}/image"}


def test_a_misspelt_field_is_named_and_the_nearest_suggested() -> None:
    (error,) = errors_of(pod(hostNetwrok=True), "/spec/replicaSpecs/0/template")
    assert error.pointer == "/spec/replicaSpecs/0/template/spec/hostNetwrok"
    assert "did you mean hostNetwork?" in error.detail
    (other,) = errors_of(pod(container(zzzz=1)))
    assert other.accepted
    assert other.accepted.startswith("one of: args, command, env")


@pytest.mark.parametrize(
    ("template", "detail", "accepted"),
    [
        (pod(container(command="sh")), "this must be a list, and is a string", "a list"),
        (env(value={}), "this must be a string, and is an object", "a string"),
        (env(value=1), "this must be a string, and is an integer", "a string: put the value in quotes"),
        (pod(container(tty=1)), "this must be true or false, and is an integer", "true or false"),
        (pod(activeDeadlineSeconds=0), "the number is too small", "1 to 2147483647"),
        (pod(activeDeadlineSeconds=2**31), "the number is too large", "1 to 2147483647"),
    ],
)
def test_a_value_of_another_type_or_range_is_answered_with_what_is_accepted(
    template: dict[str, Any], detail: str, accepted: str
) -> None:
    assert [(error.detail, error.accepted) for error in errors_of(template)] == [(detail, accepted)]


def test_all_errors_are_reported_at_once() -> None:
    found = errors_of(pod(container(image="", prots=[], env=[{"name": "A", "value": True}]), hostname="a.b"))
    assert {error.pointer for error in found} == {
        f"{C0}/image", f"{C0}/prots", f"{C0}/env/0/value", "/spec/hostname",
    }  # fmt: skip


def test_secrets_are_never_echoed() -> None:
    hostile = {"name": "A=", "value": {"x": SECRET}, "valueFrom": SECRET}
    template = pod(container(env=[hostile, {"name": "B", "value": [SECRET]}], command=SECRET, args={"a": SECRET}))
    found = errors_of(template)
    assert len(found) >= 4
    assert SECRET not in str(found)


def test_many_errors_get_a_bounded_answer_soon() -> None:
    unknown: dict[str, Any] = {f"unknown{index}": SECRET for index in range(9_000)}
    template = pod(**unknown)
    started = time.process_time()
    found = errors_of(template)
    assert time.process_time() - started < 1
    assert len(found) == MAX_ERRORS
    assert found[-1].detail == "and 8981 more errors are not listed"


TEMPLATE_KEYS = st.sampled_from(
    [
        *("metadata", "labels", "annotations", "spec", "containers", "initContainers", "name", "image", "env"),
        *("valueFrom", "resources", "limits", "cpu", "ports", "hostPort", "livenessProbe", "lifecycle"),
        *("volumes", "volumeMounts", "tolerations", "affinity", "securityContext", "dnsConfig"),
    ]
)
TEMPLATES = st.recursive(
    JSON_VALUES,
    lambda inner: st.dictionaries(TEMPLATE_KEYS, inner | st.lists(inner, max_size=3), max_size=4),
    max_leaves=20,
)


@UNHURRIED
@given(TEMPLATES)
def test_no_template_breaks_the_check(template: Any) -> None:
    for candidate in (template, {"spec": template}, {"metadata": template, "spec": {"containers": [template]}}):
        for error in errors_of(candidate):
            json.dumps([error.pointer, error.detail, error.accepted]).encode()


@UNHURRIED
@given(st.sampled_from([*container(), "env", "ports", "resources", "securityContext"]), JSON_VALUES)
def test_a_template_that_was_checked_before_has_the_same_errors(field: str, value: Any) -> None:
    template = pod(container(**{field: value}))
    unknown = Problems()
    pod_template._check(template, "", unknown)
    assert [errors_of(template), errors_of(template)] == [list(unknown.errors)] * 2


def test_a_template_is_checked_once_and_its_errors_have_the_pointers_of_each_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    valid, wrong = pod(container(image="checked-once")), pod(container(image=""))
    assert [errors_of(valid), errors_of(valid)] == [[], []]
    for at in ("/spec/a", "/spec/b"):
        problems = Problems()
        validate_pod_template(wrong, at, problems)
        assert [error.pointer for error in problems.errors] == [f"{at}/spec/containers/0/image"]
    monkeypatch.setattr(pod_template, "_check", None)  # a second check fails
    assert errors_of(valid) == []


def test_a_template_that_is_not_checked_completely_is_checked_again() -> None:
    full = Problems()
    for number in range(MAX_ERRORS):
        full.add(f"/{number}", "Invalid", "another error")
    wrong = pod(container(image=""))
    validate_pod_template(wrong, "", full)
    assert [error.pointer for error in errors_of(wrong)] == ["/spec/containers/0/image"]


def test_the_schema_is_closed_everywhere() -> None:
    schema = json.loads(files("app.domain").joinpath("data", "pod_template.schema.json").read_text())
    assert len(schema["$defs"]) > 100
    for definition in schema["$defs"].values():
        if "properties" in definition:
            assert definition["additionalProperties"] is False
