"""Each control of the pod policy on pods that differ from a harmless one in a field."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import Forbidden
from app.domain.policy import CONTROLS, JOBGATE_CONTROLS, DeclaredTemplate, Level, PodPolicy
from tests.support.json_values import JSON_VALUES, UNHURRIED
from tests.support.pod_security import CASES, RESTRICTED_POD, PodCase

AT = "/spec/replicaSpecs/3/template"


def declared(template: dict[str, Any]) -> list[DeclaredTemplate]:
    return [DeclaredTemplate.written_at(template, AT)]


def violated(template: dict[str, Any], **policy: Any) -> list[tuple[str, str]]:
    """(control, pointer) of each violation."""
    errors = list(PodPolicy(**policy).violations(declared(template)))
    assert all(error.accepted and error.detail for error in errors)
    return [(error.code, error.pointer.removeprefix(AT)) for error in errors]


@pytest.mark.parametrize("name", CASES)
def test_levels_agree_with_the_table(name: str) -> None:
    case = CASES[name]
    template = case.template()
    assert {code for code, _ in violated(template)} == set(case.baseline.split())
    restricted = {code for code, _ in violated(template, level=Level.RESTRICTED)}
    assert restricted == set(case.violates_restricted.split())
    assert violated(template, level=Level.PRIVILEGED) == []


def test_the_table_has_a_violation_of_every_control() -> None:
    found = {code for case in CASES.values() for code in f"{case.baseline} {case.violates_restricted}".split()}
    assert found | {"ProcMount"} == set(CONTROLS)


def test_proc_is_masked_unless_the_pod_has_users_of_its_own() -> None:
    unmasked = {"/spec/containers/0/securityContext/procMount": "Unmasked"}
    assert {code for code, _ in violated(PodCase(fields=unmasked).template())} == {"ProcMount"}


@pytest.mark.parametrize(
    ("fields", "control", "pointer"),
    [
        ({"/spec/nodeName": "n1"}, "NodeName", "/spec/nodeName"),
        ({"/spec/priorityClassName": "system-cluster-critical"}, "PriorityClass", "/spec/priorityClassName"),
        ({"/spec/priorityClassName": "system-node-critical"}, "PriorityClass", "/spec/priorityClassName"),
        ({"/spec/serviceAccountName": "jobgate-controller"}, "ServiceAccount", "/spec/serviceAccountName"),
        ({"/spec/serviceAccount": "jobgate-controller"}, "ServiceAccount", "/spec/serviceAccount"),
        *(
            ({"/metadata/annotations": {key: value}}, "Annotations", "/metadata/annotations/" + key.replace("/", "~1"))
            for key, value in {
                "kubernetes.io/config.mirror": "x",
                "io.kubernetes.cri-o.Devices": "/dev/sda",
                "cni.projectcalico.org/ipAddrs": "[]",
                "sidecar.istio.io/userVolume": "[]",
                "k8s.v1.cni.cncf.io/networks": "kube-system/host-net",
                "v1.multus-cni.io/default-network": '[{"name":"n","namespace":"kube-system"}]',
            }.items()
        ),
    ],
)
def test_controls_of_jobgates_own(fields: dict[str, Any], control: str, pointer: str) -> None:
    template = PodCase(fields=fields).template()
    for level in Level:
        assert violated(template, level=level) == [(control, pointer)]
    assert violated(template, allow=frozenset({control})) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"/spec/priorityClassName": "high"},
        {"/spec/serviceAccountName": "default", "/spec/serviceAccount": "default"},
        {"/spec/serviceAccountName": "", "/spec/nodeName": ""},
        {"/spec/serviceAccountName": "trainer"},
        {"/metadata/annotations": {"sidecar.istio.io/inject": "false", "k8s.v1.cni.cncf.io/networks": "rdma"}},
    ],
)
def test_what_the_controls_of_jobgates_own_accept(fields: dict[str, Any]) -> None:
    template = PodCase(fields=fields).template()
    assert violated(template, service_accounts=frozenset({"trainer"})) == []


def test_any_service_account_may_be_allowed() -> None:
    template = PodCase(fields={"/spec/serviceAccountName": "anything"}).template()
    assert violated(template, service_accounts=frozenset({"*"})) == []


@pytest.mark.parametrize("control", [*CONTROLS, *JOBGATE_CONTROLS])
def test_a_control_that_is_allowed_is_not_enforced(control: str) -> None:
    for case in CASES.values():
        for level in Level:
            found = {code for code, _ in violated(case.template(), level=level, allow=frozenset({control}))}
            assert control not in found


def test_every_violation_is_told_once_and_at_its_field() -> None:
    template = PodCase(
        fields={
            "/spec/hostNetwork": True,
            "/spec/volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": "/"}}],
            "/spec/containers/0/securityContext/capabilities/add": ["CHOWN", "SYS_ADMIN"],
        }
    ).template()
    with pytest.raises(Forbidden) as refused:
        PodPolicy().refuse_violations(declared(template) * 2)
    assert [(error.code, error.pointer.removeprefix(AT)) for error in refused.value.errors] == [
        ("HostNetwork", "/spec/hostNetwork"),
        ("Capabilities", "/spec/containers/0/securityContext/capabilities/add/1"),
        ("HostPathVolumes", "/spec/volumes/1/hostPath"),
    ]


def test_what_was_stored_may_stay() -> None:
    stored = PodCase(fields={"/spec/hostNetwork": True}).template()
    more = PodCase(fields={"/spec/hostNetwork": True, "/spec/hostPID": True}).template()
    PodPolicy().refuse_violations(declared(stored), before=declared(stored))
    with pytest.raises(Forbidden) as refused:
        PodPolicy().refuse_violations(declared(more), before=declared(stored))
    assert [error.code for error in refused.value.errors] == ["HostPID"]


@UNHURRIED
@given(st.sampled_from([*RESTRICTED_POD["spec"], "volumes", "ephemeralContainers", "os"]), JSON_VALUES)
def test_no_value_of_a_field_breaks_a_check(field: str, value: Any) -> None:
    template = {"metadata": {"annotations": value}, "spec": {**RESTRICTED_POD["spec"], field: value}}
    for level in Level:
        list(PodPolicy(level=level).violations(declared(template)))
